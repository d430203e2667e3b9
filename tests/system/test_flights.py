"""Right answers on real data, computed outside any engine, at several parallelisms."""
import csv
import os

import pytest

TABLE = """CREATE TABLE flights (carrier VARCHAR, dep_delay BIGINT, origin VARCHAR, dest VARCHAR, distance BIGINT)
WITH (connector='file', format='csv', path='{}/flights.csv', header='true', null_string='NA');
"""


@pytest.fixture
def ask(clink, flights):
    def call(sql, *args):
        return clink("run", *args, "-e", TABLE.format(flights) + sql).rows

    return call


@pytest.mark.parametrize("p", [1, 2, 4])
def test_totals(ask, p):
    (r,) = ask("SELECT COUNT(*) AS n, SUM(distance) AS d, COUNT(dep_delay) AS present, SUM(dep_delay) AS delay, "
               "COUNT(DISTINCT carrier) AS carriers, COUNT(DISTINCT dest) AS dests FROM flights", "-p", p)
    assert r == {"n": 336776, "d": 350217607, "present": 328521, "delay": 4152200, "carriers": 16, "dests": 105}


@pytest.mark.parametrize("p", [1, 3])
def test_groups(ask, p):
    rows = ask("SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin", "-p", p)
    assert {r["origin"]: r["n"] for r in rows} == {"EWR": 120835, "JFK": 111279, "LGA": 104662}
    rows = ask("SELECT carrier, COUNT(dep_delay) AS n, SUM(dep_delay) AS s FROM flights GROUP BY carrier", "-p", p)
    by = {r["carrier"]: (r["n"], r["s"]) for r in rows}
    assert len(by) == 16 and by["UA"] == (57979, 701898) and by["EV"] == (51356, 1024829) and by["HA"] == (342, 1676)
    rows = ask("SELECT origin, dest, COUNT(*) AS n FROM flights GROUP BY origin, dest", "-p", p)
    assert len(rows) == 224 and sum(r["n"] for r in rows) == 336776


def test_filter_against_python(ask, flights):
    rows = ask("SELECT carrier, dest, dep_delay FROM flights WHERE dep_delay > 500 AND origin <> 'EWR'", "-p", 2)
    with open(os.path.join(flights, "flights.csv")) as f:
        want = [(r["carrier"], r["dest"], int(r["dep_delay"])) for r in csv.DictReader(f)
                if r["dep_delay"] != "NA" and int(r["dep_delay"]) > 500 and r["origin"] != "EWR"]
    assert sorted((r["carrier"], r["dest"], r["dep_delay"]) for r in rows) == sorted(want)
