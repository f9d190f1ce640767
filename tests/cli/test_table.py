from logbroker.cli.table import Table

COLUMNS = ("topic", "committed", "leased", "lag")
ROWS = (("payments", "none", "0", "12"), ("orders", "7", "0", "3"))


def test_numbers_are_aligned_right_also_beside_one_that_is_not_there() -> None:
    assert Table.of(COLUMNS, ROWS).lines() == [
        "TOPIC     COMMITTED  LEASED  LAG",
        "payments       none       0   12",
        "orders            7       0    3",
    ]
    changes = Table.of(("to", "change"), [("a", "+12"), ("b", "-3"), ("c", "-")])
    assert changes.lines() == ["TO  CHANGE", "a      +12", "b       -3", "c        -"]


def test_characters_of_two_cells_do_not_shift_what_stands_behind_them() -> None:
    lines = Table.of(("a", "b"), [("漢字", "x"), ("abcd", "y")]).lines()
    assert lines == ["A     B", "漢字  x", "abcd  y"]


def test_columns_that_say_nothing_go_first_and_only_where_there_is_no_room() -> None:
    table = Table.of(COLUMNS, ROWS)
    optional = ("committed", "leased", "lag")
    assert table.without_empty(optional, table.width()) == table
    assert table.without_empty(optional, 20).columns == ("topic", "committed", "lag")
    assert table.narrowed(optional, 24).columns == ("topic", "committed", "lag")
    assert table.narrowed(optional, 23).columns == ("topic", "lag")


def test_what_does_not_fit_at_all_has_its_first_cells_cut() -> None:
    table = Table.of(("topic", "lag"), [("t" * 190, "12"), ("short", "3")])
    narrow = table.narrowed((), 20)
    assert narrow.width() == 20
    assert narrow.rows[0] == ("t" * 12 + "...", "12")
    assert narrow.rows[1] == ("short", "3")


def test_control_characters_never_come_through() -> None:
    assert Table.of(("a",), [("\x1b[31m",)]).lines() == ["A", r"\x1b[31m"]


def test_an_empty_table_is_its_titles() -> None:
    table = Table.of(("a", "b"), [])
    assert table.lines() == ["A  B"]
    assert table.narrowed(("b",), 2).lines() == ["A"]
