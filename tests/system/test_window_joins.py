"""Joins of windows against plain Python: every kind, made of rows and of groups, every batch size and parallelism, disorder within the
delay, as a hash join of bounded input and as it runs where input goes on (--changes); late rows; what is on top of them."""
import collections
import os
import random

import pytest
from test_window_top_n import RUNS, WINDOWS, settings
from test_windows import aligned, disordered, iso, table, write

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]


def two(delay_ms=5000, options=""):
    a = table("a.ndjson", delay_ms, options).replace("TABLE src", "TABLE a")
    return a + table("b.ndjson", delay_ms, options).replace("TABLE src", "TABLE b")


def data(tmp_path, n, disorder=5000):
    rnd = random.Random(SEED)
    both = []
    for name, rows in (("a", n), ("b", n // 2)):
        both.append(disordered(rnd, rows, 100_000, disorder))
        write(tmp_path / f"{name}.ndjson", both[-1])
    return both


def joined(left, right, kind):
    """left, right: key -> list of values; pairs of values, None where there is no partner."""
    out = []
    for k in {*left, *right}:
        mine, other = left.get(k, []), right.get(k, [])
        out += [(x, y) for x in mine for y in other]
        if not other and kind in ("LEFT JOIN", "FULL JOIN"):
            out += [(x, None) for x in mine]
        if not mine and kind in ("RIGHT JOIN", "FULL JOIN"):
            out += [(None, y) for y in other]
    return out


def by_text(rows):
    return sorted(rows, key=str)


@pytest.mark.parametrize("window", range(len(WINDOWS)))
@pytest.mark.parametrize("p,batch", RUNS)
def test_groups_of_two_tables(clink, tmp_path, window, p, batch):
    print(f"CLINK_SEED={SEED}")
    a, b = data(tmp_path, 1200)
    call, windows = list(WINDOWS.items())[window]
    sides = []
    for rows in (a, b):
        sums = collections.defaultdict(int)
        for t, k, v in rows:
            for w in windows(t):
                if k < "key 15" or rows is a:
                    sums[k, *w] += v
        sides.append({k: [(k[0], iso(k[2]), s)] for k, s in sums.items()})
    group = ("(SELECT k, window_start, window_end, SUM(v) AS s FROM TABLE({}) {} GROUP BY k, window_start, window_end) {}")
    for kind in KINDS:
        want = [(x or (None, None, None)) + (y or (None, None, None)) for x, y in joined(*sides, kind)]
        for changes in ((), ("--changes",)):
            got = clink("run", "-p", p, *changes, *settings(batch), "-e", two() +
                        "SELECT x.k, x.window_end, x.s, y.k AS yk, y.window_end AS ye, y.s AS ys FROM " +
                        group.format(call.replace("src", "a"), "", "x") + f" {kind} " +
                        group.format(call.replace("src", "b"), "WHERE k < 'key 15'", "y") +
                        " ON x.k = y.k AND x.window_start = y.window_start AND x.window_end = y.window_end").rows
            assert by_text(tuple(r.values()) for r in got) == by_text(want)


@pytest.mark.parametrize("p,batch", RUNS)
def test_rows_of_two_tables_meet_in_their_window(clink, tmp_path, p, batch):
    """No other equality: each window is one key. And with a key and a condition beyond."""
    print(f"CLINK_SEED={SEED}")
    a, b = data(tmp_path, 300)
    call, windows = list(WINDOWS.items())[0]
    for on, key in (("", lambda t, k: aligned(t, 10000)), (" AND x.k = y.k", lambda t, k: (aligned(t, 10000), k))):
        left, right = collections.defaultdict(list), collections.defaultdict(list)
        for rows, side in ((a, left), (b, right)):
            for row in rows:
                side[key(*row[:2])].append(row)
        want = [(x, y) for k in left for x in left[k] for y in right.get(k, []) if x[2] < y[2]]
        want = collections.Counter((x[0], x[2], y[0], y[2]) for x, y in want)
        got = clink("run", "-p", p, "--changes", *settings(batch), "-e", two() +
                    f"SELECT x.t, x.v, y.t AS yt, y.v AS yv FROM TABLE({call.replace('src', 'a')}) x JOIN TABLE({call.replace('src', 'b')}) y "
                    f"ON x.window_start = y.window_start AND x.window_end = y.window_end{on} AND x.v < y.v").rows
        assert collections.Counter(tuple(r.values()) for r in got) == want


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("p,batch", RUNS)
def test_rows_that_have_a_partner_in_their_window_or_none(clink, tmp_path, exists, p, batch):
    print(f"CLINK_SEED={SEED}")
    a, b = data(tmp_path, 1500)
    call, windows = list(WINDOWS.items())[1]
    there = {(k, *w) for t, k, v in b for w in windows(t) if v > 50}
    want = collections.Counter((t, k, v, iso(w[1])) for t, k, v in a for w in windows(t) if ((k, *w) in there) == exists)
    for changes in ((), ("--changes",)):
        got = clink("run", "-p", p, *changes, *settings(batch), "-e", two() +
                    f"SELECT t, k, v, window_end FROM TABLE({call.replace('src', 'a')}) x WHERE {'' if exists else 'NOT '}EXISTS ("
                    f"SELECT 1 FROM TABLE({call.replace('src', 'b')}) y WHERE x.k = y.k AND x.window_start = y.window_start AND "
                    "x.window_end = y.window_end AND y.v > 50)").rows
        assert collections.Counter(tuple(r.values()) for r in got) == want


@pytest.mark.parametrize("p,batch", RUNS)
def test_the_windows_columns_go_on_through_the_join(clink, tmp_path, p, batch):
    """The most joined key of each window: GROUP BY and a rank on top are of the same windows, and all output only grows."""
    print(f"CLINK_SEED={SEED}")
    a, b = data(tmp_path, 600)
    call, windows = list(WINDOWS.items())[0]
    n = collections.Counter()
    count = collections.Counter((k, aligned(t, 10000)) for t, k, v in b)
    for t, k, v in a:
        n[k, aligned(t, 10000)] += count[k, aligned(t, 10000)]
    want = []
    for s in {s for _, s in n}:
        best = sorted((-c, k) for (k, at), c in n.items() if at == s and c)[:2]
        want += [(iso(s), k, -c) for c, k in best]
    got = clink("run", "-p", p, *settings(batch), "-e", two() +
                "SELECT s, k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s, e ORDER BY n DESC, k) AS r FROM ("
                "SELECT x.window_start AS s, x.window_end AS e, x.k, COUNT(*) AS n FROM "
                f"TABLE({call.replace('src', 'a')}) x JOIN TABLE({call.replace('src', 'b')}) y "
                "ON x.k = y.k AND x.window_start = y.window_start AND x.window_end = y.window_end "
                "GROUP BY x.window_start, x.window_end, x.k)) WHERE r <= 2").rows
    assert by_text(tuple(r.values()) for r in got) == by_text(want)


def test_microseconds_between_the_end_of_a_window_and_its_window_time(clink, tmp_path):
    """The watermark stands behind window_time, which is a millisecond before the end, when the window is not over yet."""
    with open(tmp_path / "a.ndjson", "w") as f:
        for t in ("00:00:01", "00:00:09.9995", "00:00:09.9998", "00:00:10", "00:00:30"):
            f.write('{"t":"2026-01-01 %s","k":"a"}\n' % t)
    ddl = ("CREATE TABLE a (k VARCHAR, t TIMESTAMP(6), WATERMARK FOR t AS t) WITH (connector='file', format='json', path='a.ndjson');\n")
    group = "(SELECT k, window_time AS wt, window_end AS e, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(t), INTERVAL '10' SECOND))" \
            " GROUP BY k, window_start, window_end, window_time)"
    for on in ("x.wt = y.wt", "x.e = y.e"):
        got = clink("run", "-p", 1, "--changes", "--set", "batch_rows=1", "-e", ddl +
                    f"SELECT x.e, x.n, y.n AS m FROM {group} x LEFT JOIN {group} y ON x.k = y.k AND {on}").rows
        assert sorted((r["e"][14:19], r["n"], r["m"]) for r in got) == [("00:10", 3, 3), ("00:20", 1, 1), ("00:40", 1, 1)]
