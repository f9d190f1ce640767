from logbroker.cli.drafts import BadLine, Drafts, json_of, keys_and_values_of, values_of
from logbroker.cli.lines import Block
from logbroker.record.record import Header

NOW_MS = 77
HEADERS = (Header("n", b"v"),)


def block(*lines: bytes, first: int = 1) -> Block:
    return Block(first, list(lines), 0)


def test_each_line_is_a_value() -> None:
    drafts, bad = values_of(None, ())(block(b"a", b"", first=5), NOW_MS)
    assert (drafts, bad) == ([Drafts(range(5, 7), [b"a", b""])], None)


def test_all_lines_may_have_one_key_and_the_same_headers() -> None:
    drafts, _ = values_of(b"", HEADERS)(block(b"a", b"b"), NOW_MS)
    assert drafts == [Drafts(range(1, 3), [b"a", b"b"], [b"", b""], [HEADERS, HEADERS])]


def test_a_separator_parts_key_and_value_at_its_first_place() -> None:
    drafts, bad = keys_and_values_of(b"::", ())(block(b"k::v::w", b"::v", b"k::"), NOW_MS)
    assert bad is None
    assert drafts == [Drafts(range(1, 4), [b"v::w", b"v", b""], [b"k", b"", b"k"])]


def test_a_line_without_the_separator_is_named_and_what_stands_before_it_kept() -> None:
    drafts, bad = keys_and_values_of(b"\t", ())(block(b"k\tv", b"none", b"k\tv", first=8), NOW_MS)
    assert bad == BadLine(9, "no key separator '\\t'")
    assert drafts[0].values == [b"v"]


def test_a_bad_json_line_is_named_and_what_stands_before_it_kept() -> None:
    parse = json_of(ignore_partition=False)
    drafts, bad = parse(block(b'{"value":"a"}', b"", b"{", b"{}"), NOW_MS)
    assert bad is not None
    assert bad.line_number == 3
    assert drafts == [Drafts([1], [b"a"])]


def test_records_without_a_timestamp_among_others_have_now() -> None:
    parse = json_of(ignore_partition=False)
    drafts, _ = parse(block(b'{"timestamp_ms":"5"}', b"{}"), NOW_MS)
    assert drafts[0].timestamps_ms == [5, NOW_MS]


def test_records_that_all_name_their_partition_are_gathered_by_it() -> None:
    lines = [b'{"partition":%d,"value":"%d"}' % (at % 2, at) for at in range(4)]
    drafts, _ = json_of(ignore_partition=False)(block(*lines), NOW_MS)
    assert drafts == [
        Drafts([1, 3], [b"0", b"2"], partition=0),
        Drafts([2, 4], [b"1", b"3"], partition=1),
    ]


def test_records_that_do_not_all_name_it_keep_the_order_of_the_lines() -> None:
    lines = [b'{"partition":0,"value":"a"}', b'{"key":"k","value":"b"}', b'{"partition":0}']
    drafts, _ = json_of(ignore_partition=False)(block(*lines), NOW_MS)
    assert [each.line_numbers for each in drafts] == [[1], [2], [3]]
    drafts, _ = json_of(ignore_partition=True)(block(*lines), NOW_MS)
    assert [each.line_numbers for each in drafts] == [[1, 2, 3]]
