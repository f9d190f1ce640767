"""README.md is true: its commands and snippets run, in their order; its tables are the code's.

    ```sh       runs in bash, against a broker that its `logbroker serve` has started
    ```python   runs as a program
    ```toml     is a settings file
    ```text     is what the block before it printed; `...` stands for anything
    ```         is a picture

Where `grpcurl` is not installed, this file stands in for it: it asks the broker's
reflection what the shown JSON means, as grpcurl does.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from logbroker import config
from logbroker.errors import REASONS
from logbroker.wire.status import CODE

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CODE_README = ROOT / "logbroker" / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)]+)\)")
SHOWN_ADDRESS = "127.0.0.1:9470"
LANGUAGES = {"sh", "python", "toml", "text", ""}


class Block(NamedTuple):
    """A fenced block of README.md."""

    line: int
    language: str
    text: str


def blocks() -> list[Block]:
    text = README.read_text()
    return [
        Block(text.count("\n", 0, match.start()) + 1, match[1], match[2])
        for match in BLOCK.finditer(text)
    ]


def rows(*header: str) -> list[list[str]]:
    """Returns the cells of the table under this header, without backquotes."""
    lines = README.read_text().splitlines()
    start = lines.index(f"| {' | '.join(header)} |") + 2
    table = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip().replace("`", "") for cell in line.strip("|").split("|")])
    return table


# The tables


def test_the_settings_are_those_of_the_config_with_their_defaults():
    expected = []
    for section in fields(config.Config):
        owner = getattr(config.Config(), section.name)
        for setting in fields(owner):
            name = f"{section.name}.{setting.name}"
            variable = "LOGBROKER_" + name.replace(".", "_").upper()
            expected.append([name, variable, shown(getattr(owner, setting.name))])
    table = rows("setting", "variable", "default", "meaning")
    assert [row[:3] for row in table] == expected
    assert [row[0] for row in table if not row[3]] == []


def shown(default: Any) -> str:
    match default:
        case bool():
            return str(default).lower()
        case int():
            return f"{default:,}"
        case _:
            return str(default)


def test_the_reasons_are_those_of_the_errors():
    expected = [[reason, kind.__name__, meaning] for reason, (kind, meaning) in REASONS.items()]
    said = [[reason, kind, meaning.replace("`", "")] for reason, kind, meaning in expected]
    assert rows("reason", "class", "meaning") == said


def test_the_classes_say_what_a_client_may_do():
    kinds = dict.fromkeys(kind for kind, _ in REASONS.values())
    expected = [
        [
            kind.__name__,
            CODE[kind].name if kind in CODE else "of clients alone",
            "yes" if kind.may_retry else "no",
            "yes" if kind.no_effect else "no",
        ]
        for kind in kinds
    ]
    assert rows("class", "gRPC status", "may succeed later", "surely nothing done") == expected


@pytest.mark.parametrize("file", [README, CODE_README], ids=["README", "logbroker/README"])
def test_links_lead_somewhere(file):
    text = file.read_text()
    for target in LINK.findall(text):
        path, _, heading = target.partition("#")
        assert "://" in target or (file.parent / path).exists(), target
        assert not heading or f"# {heading.replace('-', ' ')}\n" in text.lower(), target


def test_the_walks_lead_through_functions_that_are_there():
    walks = re.findall(r"^  (\w+/\S+\.py) +(\w+) ", CODE_README.read_text(), re.MULTILINE)
    assert len(walks) > 20
    for file, name in walks:
        text = (CODE_README.parent / file).read_text()
        assert re.search(rf"^ *(async )?def {name}\(", text, re.MULTILINE), f"{file}: {name}"


def test_every_block_is_of_a_kind_that_is_checked():
    assert {block.language for block in blocks()} == LANGUAGES


# The blocks


@pytest.mark.slow
@pytest.mark.timeout(600)  # some fifty programs, one after another
def test_the_commands_and_snippets_run_in_their_order(tmp_path):
    with Reader(tmp_path) as reader:
        for block in blocks():
            reader.follow(block)


class Reader:
    """Somebody who does what README.md says, in an empty directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._broker: subprocess.Popen[str] | None = None
        self._address = SHOWN_ADDRESS
        self._printed = ""
        commands = directory / "commands"
        self._path = os.pathsep.join((str(commands), bin_directory(), os.environ["PATH"]))
        activate = directory / ".venv" / "bin" / "activate"
        for made in (commands, activate.parent):
            made.mkdir(parents=True)
        activate.write_text(f'PATH="{bin_directory()}:$PATH"\n')
        if not shutil.which("grpcurl"):
            (commands / "grpcurl").write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} "$@"\n')
            (commands / "grpcurl").chmod(0o755)

    def follow(self, block: Block) -> None:
        """Does what the block says."""
        text = block.text.replace(SHOWN_ADDRESS, self._address)
        where = f"README.md:{block.line}"
        match block.language:
            case "sh" if "logbroker serve" in text:
                self._serve(text)
            case "sh" if text.startswith("make "):
                for line in text.splitlines():
                    self._run(["make", "--dry-run", line.split()[1]], where, ROOT)
            case "sh":
                self._printed = self._run(["bash", "-euo", "pipefail", "-c", text], where)
            case "python":
                self._printed = self._run([sys.executable, "-c", text], where)
            case "toml":
                file = self._directory / "logbroker.toml"
                file.write_text(text)
                assert config.load(file, environ={}) != config.Config(), where
            case "text":
                pattern = ".*".join(map(re.escape, text.rstrip("\n").split("...")))
                is_as_shown = re.fullmatch(pattern, self._printed.rstrip("\n"), re.DOTALL)
                assert is_as_shown, f"{where} shows\n{text}\nand what came is\n{self._printed}"

    def _run(self, command: list[str], where: str, directory: Path | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=directory or self._directory,
            env=self._environ(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{where} failed\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _serve(self, text: str) -> None:
        assert self._broker is None, "one broker is enough"
        script = text.replace("logbroker serve", "exec logbroker serve")
        with (self._directory / "broker.log").open("w") as log:
            self._broker = subprocess.Popen(
                ["bash", "-euc", script],
                cwd=self._directory,
                env=self._environ() | {"LOGBROKER_LISTEN_GRPC": "127.0.0.1:0"},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._broker.stdout
        started = self._broker.stdout.readline()
        assert "listens on" in started, (self._directory / "broker.log").read_text()
        self._address = started.split()[-1]

    def _environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if "LOGBROKER_" not in name}
        return kept | {"PATH": self._path, "LOGBROKER_SERVER": self._address}

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        if self._broker:
            self._broker.send_signal(signal.SIGTERM)
            self._broker.communicate(timeout=30)
            assert self._broker.returncode == 0, "a clean stop exits with 0"


def bin_directory() -> str:
    return str(Path(sys.executable).parent)


# Where there is no grpcurl


def grpcurl(arguments: list[str]) -> None:
    """Does what `grpcurl -plaintext [-d JSON] ADDRESS list|SERVICE/METHOD` does."""
    *options, address, what = arguments
    given = options[2] if options[1:2] == ["-d"] else "{}"
    assert options == ["-plaintext", "-d", given][: len(options)]
    with grpc.insecure_channel(address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        if what == "list":
            print("\n".join(sorted(database.get_services())))
            return
        service, _, name = what.partition("/")
        pool = descriptor_pool.DescriptorPool(database)
        method = pool.FindServiceByName(service).FindMethodByName(name)
        request = json_format.Parse(given, message_factory.GetMessageClass(method.input_type)())
        for answer in answers(channel, method, request):
            print(json_format.MessageToJson(answer, preserving_proto_field_name=True))


def answers(channel: grpc.Channel, method: Any, request: Any) -> Iterator[Any]:
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    call = make(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
    )
    answer = call(request, timeout=10)
    yield from answer if method.server_streaming else [answer]


if __name__ == "__main__":
    grpcurl(sys.argv[1:])
