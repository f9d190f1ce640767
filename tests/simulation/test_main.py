"""`make simulate`: what was done, what was found, and how to see it again."""

from collections import Counter

import pytest

from . import __main__ as command
from .report import name_of
from .simulation import Result


def result(seed, *faults):
    counts = Counter({"power cuts": 2, "records checked": 30})
    return Result(seed, list(faults), counts, "digest", ["a line of the story"])


def run(monkeypatch, capsys, results, *arguments):
    by_seed = {one.seed: one for one in results}
    monkeypatch.setattr(command, "_results", lambda seeds: [by_seed[seed] for seed in seeds])
    monkeypatch.setattr(command, "simulate", by_seed.get)
    monkeypatch.setattr("sys.argv", ["simulation", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    code = command.main()
    return code, capsys.readouterr().out


def test_a_run_without_faults_says_what_was_done(monkeypatch, capsys):
    code, said = run(monkeypatch, capsys, [result(1), result(2)], "--seeds", "2")
    assert code == 0
    assert "seeds that found something: none" in said
    rows = [line.replace("│", " ").split() for line in said.splitlines()]
    assert ["ended:", "power", "cuts", "4"] in rows
    assert ["checked:", "records", "checked", "60"] in rows
    assert ["found:", "lost", "0"] in rows


def test_a_seed_that_found_something_is_told_with_how_to_run_it_again(monkeypatch, capsys):
    lost = "a record acknowledged is lost: b'1' of t/0"
    code, said = run(monkeypatch, capsys, [result(7), result(8, lost)], "--seeds=2", "--first=7")
    assert code == 1
    assert f"seed 8: {lost}" in said
    assert "-m simulation --seed 8" in said
    assert "seeds that found something: [8]" in said


@pytest.mark.slow
def test_all_seeds_run_and_in_order_whichever_processes_run_them(monkeypatch):
    """With `max_tasks_per_child` the pool hung once its processes had done their share."""
    monkeypatch.setattr(command, "SEEDS_PER_POOL", 6)
    assert [one.seed for one in command._results(range(3, 20))] == list(range(3, 20))


def test_one_seed_tells_its_story(monkeypatch, capsys):
    code, said = run(monkeypatch, capsys, [result(8, "a fault")], "--seed", "8")
    assert code == 1
    assert "a line of the story" in said
    assert "seed 8: a fault" in said


@pytest.mark.parametrize(
    "fault, name",
    [
        ("a record acknowledged is lost: b'1'", "lost"),
        ("by-key: never delivered, and not pending: 1", "lost"),
        ("not in order: 3 at 4", "wrongly ordered"),
        ("by-key: delivered before 3 was through: 4", "wrongly ordered"),
        ("an offset was used again: 3", "twice or a phantom"),
        ("the groups do not come to rest", "anything else"),
    ],
)
def test_faults_have_names(fault, name):
    assert name_of(fault) == name
