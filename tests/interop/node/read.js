// Prints the records in a file of bytes as JSON, with nothing but the .proto files and protobufjs.
// node read.js PROTO_DIR MESSAGE FILE, where MESSAGE is Segment or FetchResponse.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const zlib = require("node:zlib");
const protobuf = require("protobufjs");

const CODECS = { 0: (data) => data, 1: zlib.gunzipSync };
const hex = (bytes) => Buffer.from(bytes).toString("hex");

function recordsOf(batch, Records) {
  const columns = Records.decode(CODECS[batch.attributes & 7](Buffer.from(batch.records)));
  const headers = new Map(columns.headers.map((row) => [row.record, row.headers]));
  const nullValues = new Set(columns.nullValues);
  const nullKeys = new Set(columns.nullKeys);
  return columns.values.map((value, index) => ({
    offset: String(BigInt(batch.baseOffset.toString()) + BigInt(index)),
    timestamp_ms: String(columns.timestampsMs[index] ?? batch.maxTimestampMs),
    key: !columns.keys.length || nullKeys.has(index) ? null : hex(columns.keys[index]),
    value: nullValues.has(index) ? null : hex(value),
    headers: (headers.get(index) ?? []).map((header) => [
      header.name,
      Object.hasOwn(header, "value") && header.value !== null ? hex(header.value) : null,
    ]),
  }));
}

const [, , protos, message, file] = process.argv;
const root = new protobuf.Root();
root.resolvePath = (_, target) => path.join(protos, target);
root.loadSync(["logbroker/v1/fetch_service.proto", "logbroker/v1/records.proto"]);
const read = root.lookupType(`logbroker.v1.${message}`).decode(fs.readFileSync(file));
const Records = root.lookupType("logbroker.v1.Records");
const found = read.batches.flatMap((batch) => recordsOf(batch, Records));
process.stdout.write(JSON.stringify({ next_offset: String(read.nextOffset ?? ""), records: found }));
