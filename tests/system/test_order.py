"""ORDER BY, LIMIT, ranks and deduplication over real data, held against DuckDB."""
import os

import duckdb
import pytest

COLUMNS = [("year", "BIGINT"), ("month", "BIGINT"), ("day", "BIGINT"), ("carrier", "VARCHAR"), ("flight", "BIGINT"), ("tailnum", "VARCHAR"),
           ("dep_delay", "BIGINT"), ("arr_delay", "BIGINT"), ("origin", "VARCHAR"), ("dest", "VARCHAR"), ("distance", "BIGINT"),
           ("sched_dep_time", "BIGINT")]
LIST = ", ".join(f"{n} {t}" for n, t in COLUMNS)

# The order is total in each, so that there is one right answer; NULL order is said.
SORTED = [
    "SELECT carrier, flight, month, day, dep_delay, origin, dest FROM flights WHERE month = 3 "
    "ORDER BY dep_delay DESC NULLS LAST, carrier, flight, day, origin, dest",
    "SELECT carrier, flight, month, day, dep_delay FROM flights ORDER BY dep_delay DESC NULLS LAST, carrier, flight, month, day LIMIT 100",
    "SELECT tailnum, dep_delay, day FROM flights WHERE month = 2 ORDER BY tailnum NULLS FIRST, dep_delay NULLS FIRST, day, distance LIMIT 500 OFFSET 90",
    "SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest ORDER BY n DESC, dest",
    "SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest ORDER BY n DESC, dest LIMIT 7 OFFSET 3",
    "SELECT carrier, SUM(distance) AS d FROM flights GROUP BY carrier ORDER BY 2 LIMIT 4",
]
RANKED = [
    "SELECT carrier, dep_delay, rn FROM (SELECT carrier, dep_delay, ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY dep_delay DESC NULLS LAST) AS rn "
    "FROM flights) t WHERE rn <= 5",
    "SELECT origin, dest, distance, r FROM (SELECT origin, dest, distance, RANK() OVER (PARTITION BY origin ORDER BY distance DESC) AS r "
    "FROM flights) t WHERE r <= 366",
    "SELECT origin, dest, distance, r FROM (SELECT origin, dest, distance, DENSE_RANK() OVER (PARTITION BY origin ORDER BY distance) AS r "
    "FROM flights) t WHERE r <= 2",
    "SELECT tailnum, year, month, day, sched_dep_time, origin FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY tailnum ORDER BY month DESC, day DESC, "
    "sched_dep_time DESC, origin) AS rn FROM flights) t WHERE rn = 1",
    "SELECT dest, n, r FROM (SELECT dest, n, RANK() OVER (ORDER BY n DESC) AS r FROM (SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest) g) t "
    "WHERE r <= 20",
]


@pytest.fixture(scope="module")
def duck(flights):
    c = duckdb.connect()
    c.execute(f"CREATE TABLE flights AS SELECT {', '.join(n for n, _ in COLUMNS)} FROM read_csv('{flights}/flights.csv', nullstr='NA', "
              f"types={{{', '.join(f'{n!r}: {t!r}' for n, t in COLUMNS)}}})")
    return lambda sql: c.execute(sql).fetchall()


@pytest.fixture
def ask(clink, flights):
    ddl = (f"CREATE TABLE flights ({LIST}) WITH (connector='file', format='csv', path='{os.path.join(flights, 'flights.csv')}', header='true', "
           "null_string='NA');\n")
    return lambda sql, *args: [tuple(r.values()) for r in clink("run", *args, "-e", ddl + sql).rows]


def in_some_order(rows):
    return sorted(rows, key=lambda r: tuple((v is None, v if v is not None else 0) for v in r))


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("sql", SORTED, ids=range(len(SORTED)))
def test_sorted(ask, duck, sql, p):
    assert ask(sql, "-p", p) == duck(sql)


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("sql", RANKED, ids=range(len(RANKED)))
def test_ranked(ask, duck, sql, p):
    assert in_some_order(ask(sql, "-p", p)) == in_some_order(duck(sql))


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("sql", [RANKED[0], RANKED[2], RANKED[4]], ids=["row_number", "dense_rank", "rank_of_counts"])
def test_changes_net_to_the_result(clink, flights, duck, sql, p):
    ddl = (f"CREATE TABLE flights ({LIST}) WITH (connector='file', format='csv', path='{os.path.join(flights, 'flights.csv')}', header='true', "
           "null_string='NA');\n")
    net = {}
    for r in clink("run", "--changes=json", "-p", p, "-e", ddl + sql).rows:
        op, *row = r.values()
        net[tuple(row)] = net.get(tuple(row), 0) + (1 if op in ("+I", "+U") else -1)
    rows = [row for row, n in net.items() for _ in range(n)]
    assert min(net.values()) >= 0
    assert in_some_order(rows) == in_some_order(duck(sql))
