"""`log dump|verify|repair` on files of a data directory, without a broker."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from logbroker.cli.log import app
from logbroker.storage.file.disk import Disk

GOLDEN = Path("tests/golden")
LOG = f"{0:020}.log"


@pytest.fixture
def directory(tmp_path):
    """A partition in a data directory."""
    made = tmp_path / "data/topics/orders/0"
    made.mkdir(parents=True)
    for name in (LOG, f"{0:020}.index", f"{0:020}.timeindex", "checkpoint"):
        shutil.copy(GOLDEN / name, made)
    return made


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def damage(directory, at=150):
    data = bytearray((directory / LOG).read_bytes())
    data[at] ^= 1
    (directory / LOG).write_bytes(data)


def test_every_file_can_be_dumped_and_is_sound(directory):
    for path in directory.iterdir():
        assert run("dump", path).exit_code == 0, path
        assert run("verify", path).exit_code == 0, path


def test_json_has_an_object_a_line_and_int64_as_strings(directory):
    ran = run("dump", "-o", "json", "--records", directory / LOG)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [row["base_offset"] for row in rows if "base_offset" in row] == ["0", "1", "3"]
    assert [row["offset"] for row in rows if "offset" in row] == list("012345")


def test_damage_is_named_with_its_range_and_the_exit_code_is_1(directory):
    damage(directory)
    ran = run("verify", directory)
    assert ran.exit_code == 1
    assert "offsets 1 to 3 are damaged: bytes 95 to 204" in ran.stdout
    ran = run("verify", "-o", "json", directory / LOG)
    [finding] = json.loads(ran.stdout)["findings"]
    assert (finding["finding"], finding["offset"], finding["next_offset"]) == ("damage", "1", "3")


def test_a_torn_tail_is_named_and_zeros_are_not(directory):
    path = directory / LOG
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(1_000))
    assert run("verify", path).exit_code == 0
    path.write_bytes(whole[:-1] + bytes(1_000))
    ran = run("verify", path)
    assert ran.exit_code == 1
    assert "torn tail: 122 bytes from position 204 on" in ran.stdout


def test_repair_needs_to_be_told_what_to_do(directory):
    damage(directory)
    before = (directory / LOG).read_bytes()
    assert run("repair", directory).exit_code == 2
    assert (directory / LOG).read_bytes() == before


def test_dropping_damage_keeps_a_copy_and_the_good_batches(directory):
    damage(directory)
    before = (directory / LOG).read_bytes()
    assert run("repair", "--drop-damage", directory).exit_code == 0
    assert (directory / f"{LOG}.bak").read_bytes() == before
    assert (directory / LOG).read_bytes() == before[:95] + before[204:]
    assert run("verify", directory).exit_code == 0
    assert "offsets 1 to 3 are not there" in run("verify", directory).stdout


def test_cutting_the_tail_keeps_a_copy(directory):
    damage(directory, at=300)
    before = (directory / LOG).read_bytes()
    assert run("repair", "--cut-tail", directory / LOG).exit_code == 0
    assert (directory / LOG).read_bytes() == before[:204]
    assert (directory / f"{LOG}.bak").read_bytes() == before
    assert run("verify", directory).exit_code == 0


def test_an_index_is_made_anew(directory):
    index = directory / f"{0:020}.index"
    whole = index.read_bytes()
    index.write_bytes(b"noise")
    assert run("verify", index).exit_code == 1
    assert run("repair", "--rebuild-index", directory).exit_code == 0
    assert index.read_bytes() == whole
    assert not (directory / f"{LOG}.bak").exists()


def test_a_second_copy_is_never_written_over_the_first(directory):
    damage(directory)
    (directory / f"{LOG}.bak").write_bytes(b"kept")
    ran = run("repair", "--drop-damage", directory)
    assert ran.exit_code == 1
    assert (directory / f"{LOG}.bak").read_bytes() == b"kept"


def test_nothing_is_repaired_while_a_broker_holds_the_directory(directory):
    damage(directory)
    disk = Disk()
    lock = disk.lock(directory.parents[2] / "lock")
    ran = run("repair", "--drop-damage", directory)
    assert ran.exit_code == 1
    assert "BROKER_RUNNING" in ran.stderr
    assert not (directory / f"{LOG}.bak").exists()
    disk.close(lock)
    assert run("repair", "--drop-damage", directory).exit_code == 0


def test_a_file_that_lies_alone_needs_to_be_told_whose_it_is(directory):
    (directory / "checkpoint").unlink()
    ran = run("verify", directory / LOG)
    assert ran.exit_code == 1
    assert "--topic-id" in ran.stderr
    ran = run("verify", "--topic-id", "6f1c", "--partition", "0", directory / LOG)
    assert ran.exit_code == 0
    ran = run("verify", "--topic-id", "other", "--partition", "0", directory / LOG)
    assert ran.exit_code == 1


@pytest.mark.parametrize("harm", [b"", b"noise", b"\xff" * 200])
def test_an_unreadable_checkpoint_is_said_to_be_so(directory, harm):
    path = directory / "checkpoint"
    path.write_bytes(harm)
    assert run("verify", path).exit_code == 1
    ran = run("dump", path)
    assert ran.exit_code == 1
    assert "not sound" in ran.stderr


@pytest.mark.parametrize("name", ["nothing", "other.txt", "x.log"])
def test_other_files_are_a_plain_error(tmp_path, name):
    if name != "nothing":
        (tmp_path / name).write_bytes(b"x")
    for verb in ("dump", "verify"):
        ran = run(verb, tmp_path / name)
        assert ran.exit_code == 1
        assert "Traceback" not in ran.output
        assert "INVALID_ARGUMENT" in ran.stderr


def listing(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


CHOICES = ("--cut-tail", "--drop-damage", "--rebuild-index")


@pytest.mark.parametrize("choice", CHOICES)
def test_a_dry_run_tells_the_same_and_changes_nothing(directory, choice):
    damage(directory)
    path = directory / LOG
    path.write_bytes(path.read_bytes() + b"torn")
    before = listing(directory)
    told = run("repair", choice, "--dry-run", "-o", "json", directory)
    assert told.exit_code == 0
    assert listing(directory) == before
    in_words = run("repair", choice, "--dry-run", directory).stdout
    assert "dry run, nothing is changed: " in in_words
    done = run("repair", choice, "-o", "json", directory)
    assert listing(directory) != before
    assert json.loads(told.stdout) == json.loads(done.stdout) | {"dry_run": True}


def test_a_dry_run_may_look_while_a_broker_holds_the_directory(directory):
    damage(directory)
    disk = Disk()
    lock = disk.lock(directory.parents[2] / "lock")
    assert run("repair", "--drop-damage", "--dry-run", directory).exit_code == 0
    disk.close(lock)


def test_what_dropped_damage_costs_is_said(directory):
    damage(directory)
    ran = run("repair", "--drop-damage", directory)
    assert "109 damaged bytes dropped, index files made anew" in ran.stdout
    assert "offsets 1 to 3 are gone for good: readers get DATA_LOSS there" in ran.stdout
    assert "go on at 3" in ran.stdout


def test_what_a_cut_tail_costs_depends_on_what_was_surely_there(directory):
    """The checkpoint says 6: offsets 3 to 6 were on the disk."""
    whole = listing(directory)
    damage(directory, at=300)
    ran = run("repair", "--cut-tail", directory)
    assert "offsets 3 to 6 are gone for good" in ran.stdout
    (directory / f"{LOG}.bak").unlink()
    (directory / LOG).write_bytes(whole[LOG] + b"torn" + bytes(100))
    ran = run("repair", "--cut-tail", directory)
    assert "104 bytes cut off the tail" in ran.stdout
    assert "the next record gets offset 6" in ran.stdout
    assert "gone for good" not in ran.stdout


def test_a_cut_tail_before_another_segment_costs_all_up_to_that(directory):
    damage(directory, at=300)
    (directory / f"{10:020}.log").write_bytes(b"")
    ran = run("repair", "--cut-tail", directory / LOG)
    assert "offsets 3 to 10 are gone for good" in ran.stdout


def test_zeros_at_the_end_cost_nothing(directory):
    path = directory / LOG
    path.write_bytes(path.read_bytes() + bytes(100))
    ran = run("repair", "--cut-tail", path)
    assert ran.stdout.splitlines() == [f"{path}: 100 bytes cut off the tail, index files made anew"]


def test_both_in_one_go_leave_the_good_batches_and_one_copy(directory):
    damage(directory)
    path = directory / LOG
    path.write_bytes(path.read_bytes() + b"torn")
    before = path.read_bytes()
    ran = run("repair", "--cut-tail", "--drop-damage", directory)
    assert ran.exit_code == 0
    assert path.read_bytes() == before[:95] + before[204:-4]
    assert (directory / f"{LOG}.bak").read_bytes() == before
    assert run("verify", directory).exit_code == 0


def test_what_is_not_chosen_stays_and_is_named(directory):
    damage(directory)
    path = directory / LOG
    path.write_bytes(path.read_bytes() + b"torn")
    ran = run("repair", "--rebuild-index", path)
    assert "109 damaged bytes stay: --drop-damage" in ran.stdout
    assert "4 bad bytes at the end stay: --cut-tail" in ran.stdout


def test_a_sound_file_is_left_alone(directory):
    before = listing(directory)
    ran = run("repair", "--cut-tail", "--drop-damage", directory)
    assert ran.stdout == f"{directory / LOG}: nothing to do\n"
    assert listing(directory) == before
