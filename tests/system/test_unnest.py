"""UNNEST over JSON, held against DuckDB."""
import json
import random

import duckdb
import pytest

DDL = """CREATE TABLE t (id BIGINT, tags ARRAY<VARCHAR>, m MAP<VARCHAR, BIGINT>, r ARRAY<ROW<a BIGINT, b VARCHAR>>)
WITH (connector='file', format='json', path='t.ndjson');
"""
QUERIES = [
    ("SELECT id, tag, n FROM t CROSS JOIN UNNEST(tags) WITH ORDINALITY AS u (tag, n)",
     "SELECT id, unnest(tags) AS tag, generate_subscripts(tags, 1) AS n FROM t"),
    ("SELECT id, tag FROM t LEFT JOIN UNNEST(tags) AS u (tag) ON TRUE",
     "SELECT id, unnest(CASE WHEN len(tags) > 0 THEN tags ELSE [NULL] END) AS tag FROM t"),
    ("SELECT id, k, v FROM t, UNNEST(m) AS u (k, v)",
     "SELECT id, e.key, e.value FROM (SELECT id, unnest(map_entries(m)) AS e FROM t)"),
    ("SELECT id, a, b FROM t, UNNEST(r) AS u (a, b)",
     "SELECT id, e.a, e.b FROM (SELECT id, unnest(r) AS e FROM t)"),
    ("SELECT tag, COUNT(*) AS n, SUM(id) AS s FROM t, UNNEST(tags) AS u (tag) GROUP BY tag",
     "SELECT tag, COUNT(*), SUM(id)::BIGINT FROM (SELECT id, unnest(tags) AS tag FROM t) GROUP BY tag"),
]


def some_list(rng, make):
    return None if rng.random() < 0.1 else [make() for _ in range(rng.randrange(5))]


@pytest.fixture
def data(tmp_path):
    rng = random.Random(7)
    words = [None, "", "a", "bb", "longer than twelve bytes", "é"]
    with open(tmp_path / "t.ndjson", "w") as f:
        for i in range(3000):
            m = some_list(rng, lambda: None)
            f.write(json.dumps({
                "id": i, "tags": some_list(rng, lambda: rng.choice(words)),
                "m": None if m is None else {f"k{j}": rng.choice([None, j]) for j in range(len(m))},
                "r": some_list(rng, lambda: rng.choice([None, {"a": rng.randrange(9), "b": rng.choice(words)}])),
            }) + "\n")
    return tmp_path


def in_some_order(rows):
    return sorted(rows, key=lambda r: tuple((v is None, v if v is not None else 0) for v in r))


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("ours,theirs", QUERIES, ids=["ordinality", "left", "map", "rows", "grouped"])
def test_against_duckdb(clink, data, ours, theirs, p):
    duck = duckdb.connect()
    duck.execute(f"""CREATE TABLE t AS SELECT * FROM read_json('{data}/t.ndjson', format='newline_delimited', columns={{
        id: 'BIGINT', tags: 'VARCHAR[]', m: 'MAP(VARCHAR, BIGINT)', r: 'STRUCT(a BIGINT, b VARCHAR)[]'}})""")
    for args in ([], ["--changes=json"]):
        net = {}
        for r in clink("run", "-p", p, *args, "-e", DDL + ours).rows:
            op = r.pop("op", "+I")
            net[tuple(r.values())] = net.get(tuple(r.values()), 0) + (1 if op in ("+I", "+U") else -1)
        rows = [row for row, n in net.items() for _ in range(n)]
        assert in_some_order(rows) == in_some_order(duck.execute(theirs).fetchall())


def test_a_long_array_costs_what_it_is_long(clink, tmp_path):
    (tmp_path / "t.ndjson").write_text(json.dumps({"id": 1, "tags": [str(i) for i in range(200000)]}) + "\n")
    (r,) = clink("run", "-e", DDL + "SELECT COUNT(*) AS n, SUM(CAST(tag AS BIGINT)) AS s, MAX(id) AS i FROM t, UNNEST(tags) AS u (tag)", timeout=20).rows
    assert r == {"n": 200000, "s": 19999900000, "i": 1}
