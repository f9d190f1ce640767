"""The whole demo on a small sample: its broker, its replays, its kill, its exit code."""

import json
from collections import Counter
from statistics import mean
from zipfile import ZipFile

import pytest
import structlog

from demo.__main__ import main
from demo.figures import Figures
from demo.flights import read_flights

ROWS = [
    f"2013,{month},1,{'NA,540,NA' if n % 13 == 0 else f'{n},540,{n % 7}'},923,850,33,"
    f"{('UA', 'AA', 'B6')[n % 3]},{n},"
    f"{'NA' if n % 10 == 0 else f'N{n % 7}'},JFK,MIA,160,1089,5,40,2013-0{month}-01T10:00:00Z"
    for month in (1, 9, 2)
    for n in range(200)
]
COLUMNS = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _keep_log_settings():
    settings = structlog.get_config()
    yield
    structlog.configure(**settings)


@pytest.fixture
def sample(tmp_path):
    file = tmp_path / "sample.csv.zip"
    with ZipFile(file, "w") as archive:
        archive.writestr("flights.csv", "\n".join((COLUMNS, *ROWS, "")))
    return file


def figures_of(file):
    flights = list(read_flights(file))
    fields = [json.loads(flight.value) for flight in flights]
    delays = [one["dep_delay"] for one in fields if one["dep_time"] is not None]
    return Figures(
        flight_count=len(flights),
        without_tail_number=sum(flight.key is None for flight in flights),
        in_september=sum(flight.month == 9 for flight in flights),
        by_carrier=Counter(one["carrier"] for one in fields),
        never_left=len(flights) - len(delays),
        mean_delay=round(mean(delays), 2),
    )


def test_the_demo_kills_its_broker_and_finds_every_total_as_it_should_be(sample, capsys):
    assert main(["--data", str(sample)], figures_of(sample)) == 0
    output = capsys.readouterr().out
    assert "kill -9" in output
    assert "a new broker" in output
    assert "DIFFERS" not in output
    assert "\x1b" not in output
    assert output.rstrip().endswith("left nothing behind.")


def test_the_demo_fails_when_a_total_is_not_the_published_one(sample, capsys):
    assert main(["--data", str(sample)]) == 1
    captured = capsys.readouterr()
    assert "DIFFERS" in captured.out
    assert "The demo failed: the totals differ: flights: 600, but it should be 336,776;" in (
        captured.err
    )
    assert "kill -9" not in captured.out


def test_the_demo_fails_with_one_line_when_the_broker_does_not_come_back(
    sample, capsys, monkeypatch
):
    async def fail(broker, screen):
        raise RuntimeError("the broker ended with 1: no such directory")

    monkeypatch.setattr("demo.crash.restart", fail)
    assert main(["--data", str(sample)], figures_of(sample)) == 1
    assert capsys.readouterr().err.splitlines() == [
        "",
        "The demo failed: the broker ended with 1: no such directory",
    ]
