"""The nexmark connector: the same rows at any parallelism, the benchmark's proportions, keys that lead somewhere."""
import pytest

DDL = """CREATE TABLE person (id BIGINT, name VARCHAR, emailaddress VARCHAR, creditcard VARCHAR, city VARCHAR, state VARCHAR, datetime TIMESTAMP(3),
  extra VARCHAR) WITH (connector='nexmark', events='{n}'{more});
CREATE TABLE auction (id BIGINT, itemname VARCHAR, description VARCHAR, initialbid BIGINT, reserve BIGINT, datetime BIGINT, expires BIGINT,
  seller BIGINT, category BIGINT, extra VARCHAR) WITH (connector='nexmark', events='{n}'{more});
CREATE TABLE b (auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, datetime BIGINT, extra VARCHAR)
  WITH (connector='nexmark', "table"='bid', events='{n}'{more});
"""


def rows(clink, sql, *args, n=100000, more=""):
    return clink("run", *args, "-e", DDL.format(n=n, more=more) + sql).rows


def test_proportions(clink):
    for n, person, auction, bid in ((100000, 2000, 6000, 92000), (53, 2, 5, 46), (0, 0, 0, 0)):
        got = [rows(clink, f"SELECT COUNT(*) AS n FROM {t}", n=n)[0]["n"] for t in ("person", "auction", "b")]
        assert got == [person, auction, bid]


@pytest.mark.parametrize("table", ["person", "auction", "b"])
def test_the_same_rows_at_any_parallelism_and_for_any_columns(clink, table):
    one = clink("run", "-e", DDL.format(n=5000, more="") + f"SELECT * FROM {table}").rows
    three = clink("run", "-p", 3, "-e", DDL.format(n=5000, more="") + f"SELECT * FROM {table}").rows
    key = lambda r: sorted((k, str(v)) for k, v in r.items())
    assert sorted(map(key, one)) == sorted(map(key, three))
    times = [r["datetime"] for r in one]
    assert times == sorted(times)
    for c in one[0]:
        assert [r[c] for r in clink("run", "-e", DDL.format(n=5000, more="") + f"SELECT {c} FROM {table}").rows] == [r[c] for r in one]
    other = clink("run", "-e", DDL.format(n=5000, more=", seed='2'") + f"SELECT * FROM {table}").rows
    assert len(other) == len(one) and other != one


def test_values(clink):
    bids, persons = rows(clink, "SELECT * FROM b", n=20000), rows(clink, "SELECT id, datetime FROM person", n=20000)
    auctions = {r["id"]: r for r in rows(clink, "SELECT * FROM auction", n=20000)}
    assert [r["id"] for r in persons] == list(range(1000, 1400)) and persons[0]["datetime"] == "2015-07-15T00:00:00"
    ids = {r["id"] for r in persons}
    assert all(r["auction"] in auctions and r["bidder"] in ids for r in bids)
    assert all(auctions[r["auction"]]["datetime"] <= r["datetime"] for r in bids)
    assert all(r["seller"] in ids and r["reserve"] > r["initialbid"] and r["expires"] > r["datetime"] and 10 <= r["category"] < 15 for r in auctions.values())
    hot = sum(r["channel"] in ("Google", "Facebook", "Baidu", "Apple") for r in bids) / len(bids)
    assert 0.45 < hot < 0.55 and len({r["url"] for r in bids}) == len({r["channel"] for r in bids})
    assert bids[-1]["datetime"] - bids[0]["datetime"] == 1999  # 10,000 events a second


@pytest.mark.parametrize("ddl,says", [
    ("CREATE TABLE t (id BIGINT) WITH (connector='nexmark')", "say which with the option 'table'"),
    ("CREATE TABLE bid (auctoin BIGINT) WITH (connector='nexmark')", "did you mean auction"),
    ("CREATE TABLE bid (price VARCHAR) WITH (connector='nexmark')", "is BIGINT"),
    ("CREATE TABLE bid (price BIGINT) WITH (connector='nexmark', events='-2')", "events"),
    ("CREATE TABLE bid (price BIGINT) WITH (connector='nexmark', event='2')", "events"),
])
def test_refusals(clink, ddl, says):
    r = clink("run", "-e", ddl + "; SELECT COUNT(*) AS n FROM " + ddl.split()[2], ok=False)
    assert r.code == 1 and says in r.err


def test_it_never_ends_without_events(clink):
    r = clink("run", "-e", "CREATE TABLE bid (price BIGINT) WITH (connector='nexmark', rate_limit='100000'); SELECT price FROM bid LIMIT 5", timeout=20)
    assert len(r.rows) == 5
