"""Sequences: next, duplicate, gap, too old, fenced; and the table survives a restart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logbroker.errors import ConflictError, InvalidError
from logbroker.limits import SEQUENCE_WINDOW
from logbroker.record.batch import Batch
from logbroker.record.partition_id import PartitionId
from logbroker.topic.producer_registry import (
    ProducerRegistry,
    TableSaved,
    TopicForgotten,
)
from logbroker.topic.producers import SEQUENCES, ProducerTable, Stored


def header(sequence=0, count=1, *, producer=1, epoch=0, offset=0, at_ms=0):
    batch = Batch.unstamped(
        b"", record_count=count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )
    return batch.stamped(base_offset=offset, append_time_ms=at_ms).header


def table_of(*headers):
    table = ProducerTable()
    for each in headers:
        assert table.check(each) is None
        table.apply(each)
    return table


def refusal(table, each):
    before = table.rows_below(1 << 62)
    with pytest.raises((ConflictError, InvalidError)) as raised:
        table.check(each)
    assert table.rows_below(1 << 62) == before, "a check changes nothing"
    return raised.value


def test_the_first_batch_of_a_producer_has_sequence_0():
    table = ProducerTable()
    assert table.check(header(0)) is None
    error = refusal(table, header(5))
    assert (error.reason, error.details["expected_sequence"]) == ("SEQUENCE_GAP", "0")


def test_the_next_batch_follows_the_records_of_the_last():
    table = table_of(header(0, 3), header(3, 2))
    assert table.check(header(5)) is None
    error = refusal(table, header(6))
    assert (error.reason, error.details["expected_sequence"]) == ("SEQUENCE_GAP", "5")


def test_a_repeated_batch_is_answered_with_where_it_is():
    table = table_of(header(0, 3, offset=10, at_ms=7), header(3, 1, offset=13))
    assert table.check(header(0, 3)) == Stored(0, 3, 10, 7)


def test_a_repeated_sequence_with_another_count_is_refused():
    assert refusal(table_of(header(0, 3)), header(0, 2)).reason == "BAD_BATCH"


def test_a_sequence_inside_a_stored_batch_is_too_old():
    assert refusal(table_of(header(0, 3)), header(1, 2)).reason == "SEQUENCE_TOO_OLD"


def test_as_many_batches_are_remembered_as_may_be_under_way():
    table = table_of(*(header(at, offset=at) for at in range(SEQUENCE_WINDOW + 1)))
    assert table.check(header(1)) == Stored(1, 1, 1, 0)
    assert refusal(table, header(0)).reason == "SEQUENCE_TOO_OLD"


def test_sequences_go_on_at_0_after_the_last_of_32_bits():
    table = ProducerTable()
    table.apply(header(SEQUENCES - 2, 2, offset=5))
    assert table.check(header(0, 1)) is None
    assert table.check(header(SEQUENCES - 2, 2)) == Stored(SEQUENCES - 2, 2, 5, 0)
    assert refusal(table, header(SEQUENCES - 3)).reason == "SEQUENCE_TOO_OLD"
    assert refusal(table, header(1)).reason == "SEQUENCE_GAP"


def test_a_batch_may_lie_across_the_last_sequence():
    table = ProducerTable()
    table.apply(header(SEQUENCES - 1, 3))
    assert table.check(header(2)) is None
    assert refusal(table, header(0)).reason == "SEQUENCE_TOO_OLD"


def test_a_greater_epoch_takes_over_from_0_and_fences_the_one_before():
    table = table_of(header(0, 5))
    assert refusal(table, header(5, epoch=1)).reason == "SEQUENCE_GAP"
    assert table.check(header(0, epoch=1)) is None
    table.apply(header(0, epoch=1))
    error = refusal(table, header(5))
    assert (error.reason, error.details["producer_epoch"]) == ("PRODUCER_FENCED", "1")


def test_producers_do_not_see_each_other():
    table = table_of(header(0, 3, producer=1), header(0, 1, producer=2))
    assert table.check(header(3, producer=1)) is None
    assert table.check(header(1, producer=2)) is None


def test_without_a_producer_nothing_is_kept():
    table = ProducerTable()
    table.apply(header(producer=0))
    assert len(table) == 0


def test_producers_that_are_silent_are_forgotten():
    table = table_of(
        header(0, producer=1, at_ms=10),
        header(0, producer=2, at_ms=20),
        header(1, producer=1, at_ms=30),
    )
    table.forget(before_ms=20)
    assert len(table) == 2
    table.forget(before_ms=21)
    assert len(table) == 1
    assert refusal(table, header(1, producer=2)).reason == "SEQUENCE_GAP"


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=80), st.integers(0, 300))
def test_a_saved_table_and_the_headers_after_it_make_the_same_table(appends, cut):
    table, headers, sequences, offset = ProducerTable(), [], {}, 0
    for producer, count in appends:
        sequence = sequences.get(producer, 0)
        headers.append(header(sequence, count, producer=producer, offset=offset, at_ms=offset))
        table.apply(headers[-1])
        sequences[producer], offset = sequence + count, offset + count
    boundary = next((each.base_offset for each in headers if each.base_offset >= cut), offset)
    rebuilt = ProducerTable.from_rows(table.rows_below(boundary))
    for each in headers:
        if each.base_offset >= boundary:
            rebuilt.apply(each)
    for producer, sequence in sequences.items():
        assert rebuilt.check(header(sequence, producer=producer)) is None
    kept = {tuple(row[:2]): row[2:] for row in table.rows_below(offset)}
    for row in rebuilt.rows_below(offset):
        at = tuple(row[:2])
        assert kept[at][-len(row[2:]) :] == row[2:], "what is remembered is right"
        assert kept[at][-4:] == row[-4:], "and the last batch is"


def test_rows_come_back_as_the_table_they_were():
    table = table_of(
        header(0, 2, offset=0), header(2, 1, offset=2), header(0, producer=9, offset=3)
    )
    assert ProducerTable.from_rows(table.rows_below(4)).rows_below(4) == table.rows_below(4)
    assert table.rows_below(3) == [[1, 0, 0, 2, 0, 0, 2, 1, 2, 0]]


def test_the_registry_keeps_the_last_table_of_each_partition():
    registry = ProducerRegistry()
    partition = PartitionId("a", "id", 1)
    rows = table_of(header(0, 2)).rows_below(9)
    saved = [TableSaved("id", 1, 5, []), TableSaved("id", 1, 9, rows)]
    for event in [*saved, TableSaved("other", 1, 3, [])]:
        registry.apply(event)
    copy = ProducerRegistry()
    for event in registry.snapshot():
        copy.apply(event)
    for each in (registry, copy):
        offset, table = each.table_of(partition)
        assert (offset, table.rows_below(9)) == (9, rows)
        assert each.saved_offset(partition) == 9
        each.apply(TopicForgotten("id"))
        assert each.saved_offset(partition) == 0
        assert each.table_of(PartitionId("x", "other", 1))[0] == 3
