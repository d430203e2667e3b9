"""Top-N and first and last rows of windows against plain Python: every batch size and parallelism, disorder within the delay; late
rows; input that goes on; rows that change."""
import collections
import json
import os
import random

import pytest
from test_windows import aligned, disordered, iso, table, write

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))

WINDOWS = {
    "TUMBLE(TABLE src, DESCRIPTOR(t), INTERVAL '10' SECOND)": lambda t: [(aligned(t, 10000), aligned(t, 10000) + 10000)],
    "HOP(TABLE src, DESCRIPTOR(t), INTERVAL '4' SECOND, INTERVAL '10' SECOND)":
        lambda t: [(s, s + 10000) for s in range(aligned(t, 4000) - 8000, aligned(t, 4000) + 1, 4000) if s + 10000 > t],
    "CUMULATE(TABLE src, DESCRIPTOR(t), INTERVAL '5' SECOND, INTERVAL '10' SECOND)":
        lambda t: [(aligned(t, 10000), e) for e in range(aligned(t, 5000) + 5000, aligned(t, 10000) + 10001, 5000)],
}
RUNS = [(1, 0), (2, 7), (4, 1), (4, 0)]


def settings(batch):
    return ["--set", f"batch_rows={batch}"] if batch else []


def ranks(values, kind):
    """values: sorted. The rank of each."""
    out = []
    for i, v in enumerate(values):
        same = i > 0 and v == values[i - 1]
        step = {"ROW_NUMBER": i + 1, "RANK": out[-1] if same else i + 1, "DENSE_RANK": (out[-1] if out else 0) + (not same)}[kind]
        out.append(step)
    return out


@pytest.mark.parametrize("window", range(len(WINDOWS)))
@pytest.mark.parametrize("p,batch", RUNS)
def test_the_largest_groups_of_each_window(clink, tmp_path, window, p, batch):
    print(f"CLINK_SEED={SEED}")
    data = disordered(random.Random(SEED), 3000, 300_000, 5000)
    write(tmp_path / "src.ndjson", data)
    call, windows = list(WINDOWS.items())[window]
    sums = collections.defaultdict(lambda: collections.defaultdict(int))
    for t, k, v in data:
        for w in windows(t):
            sums[w][k] += v
    for kind in ("ROW_NUMBER", "RANK", "DENSE_RANK"):
        want = []
        for (s, e), groups in sums.items():
            order = sorted(groups.items(), key=lambda x: (-x[1], x[0]))
            by = [-v for _, v in order] if kind != "ROW_NUMBER" else order
            want += [(iso(s), iso(e), k, v, r) for (k, v), r in zip(order, ranks(by, kind)) if r <= 3]
        order = "v DESC, k" if kind == "ROW_NUMBER" else "v DESC"
        got = clink("run", "-p", p, *settings(batch), "-e", table("src.ndjson", 5000) +
                    f"SELECT s, e, k, v, r FROM (SELECT *, {kind}() OVER (PARTITION BY s, e ORDER BY {order}) AS r FROM "
                    f"(SELECT k, window_start AS s, window_end AS e, SUM(v) AS v FROM TABLE({call}) "
                    "GROUP BY k, window_start, window_end)) WHERE r <= 3").rows
        assert sorted(tuple(r.values()) for r in got) == sorted(want)


@pytest.mark.parametrize("window", range(len(WINDOWS)))
@pytest.mark.parametrize("p,batch", RUNS)
def test_the_first_and_last_row_of_each_key_and_window(clink, tmp_path, window, p, batch):
    print(f"CLINK_SEED={SEED}")
    data = disordered(random.Random(SEED), 2000, 200_000, 5000)
    write(tmp_path / "src.ndjson", data)
    call, windows = list(WINDOWS.items())[window]
    rows = collections.defaultdict(list)
    for t, k, v in data:
        for w in windows(t):
            rows[k, *w].append((t, v))
    for direction, pick in (("", min), (" DESC", lambda x: min(x, key=lambda y: (-y[0], y[1])))):
        want = [(k, iso(e), *pick(x)) for (k, s, e), x in rows.items()]
        got = clink("run", "-p", p, *settings(batch), "-e", table("src.ndjson", 5000) +
                    "SELECT k, window_end AS e, t, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end "
                    f"ORDER BY t{direction}) AS n FROM TABLE({call})) WHERE n = 1").rows
        assert sorted(tuple(r.values()) for r in got) == sorted(want)


@pytest.mark.parametrize("routed", [False, True])
def test_rows_behind_a_window_are_late(clink, tmp_path, routed):
    """Counted, and put into a table. One row a batch and one subtask, so that time comes to a row's before the next is read."""
    rnd = random.Random(SEED)
    data = disordered(rnd, 2000, 400_000, 20_000)
    write(tmp_path / "src.ndjson", data)
    top, late, rows = -1 << 60, [], collections.defaultdict(list)
    for t, k, v in data:
        s = aligned(t, 10000)
        if s + 10000 <= top - 2000:
            late.append([v, t, k])
        else:
            rows[s].append((t, k, v))
        top = max(top, t)
    late_table = "CREATE TABLE late (v BIGINT, t BIGINT, k VARCHAR) WITH (connector='file', format='json', path='late');\n" if routed else ""
    r = clink("run", "-p", 1, "--set", "batch_rows=1", "-e", late_table + table("src.ndjson", 2000, ", late_table='late'" if routed else "") +
              "SELECT window_start AS s, t, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC, t, k)"
              " AS n FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(t), INTERVAL '10' SECOND))) WHERE n <= 2")
    want = [(iso(s), *x) for s, all in rows.items() for x in sorted(all, key=lambda x: (-x[2], x[0], x[1]))[:2]]
    assert sorted(tuple(x.values()) for x in r.rows) == sorted(want)
    assert late and f"{len(late)} of {len(data)} rows came too late" in r.err, r.err
    if routed:
        got = [list(json.loads(x).values()) for f in (tmp_path / "late").iterdir() if f.name[0] != "." for x in f.read_text().splitlines()]
        assert sorted(got) == sorted(late)


@pytest.mark.parametrize("changes", [True, False])
def test_what_changes_within_the_lateness_is_changed(clink, tmp_path, changes):
    """Windows that change what they said: so does what is on top of them, and a window above sees it all."""
    data = [(1000, "a", 1), (2000, "b", 2), (40_000, "c", 3), (3000, "a", 5), (60_000, "d", 1), (70_000, "d", 1), (4000, "b", 9)]
    write(tmp_path / "src.ndjson", data)
    r = clink("run", "-p", 1, *(["--changes"] if changes else []), "--set", "batch_rows=1", "-e", table("src.ndjson", 0, ", allowed_lateness_ms='50000'") +
              "SELECT e, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s, e ORDER BY v DESC) AS n FROM "
              "(SELECT k, window_start AS s, window_end AS e, SUM(v) AS v FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(t), INTERVAL '10' SECOND))"
              " GROUP BY k, window_start, window_end)) WHERE n = 1")
    # b comes too late
    net = collections.Counter()
    for line in r.out.splitlines():
        net[tuple(json.loads(line.removeprefix("-D ")).values())] += -1 if line.startswith("-D ") else 1
    assert {k for k, n in net.items() if n} == {("1970-01-01T00:00:10Z", "a", 6), ("1970-01-01T00:00:50Z", "c", 3),
                                                    ("1970-01-01T00:01:10Z", "d", 1), ("1970-01-01T00:01:20Z", "d", 1)}
    assert all(n in (0, 1) for n in net.values()) and ("-D " in r.out) == changes


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("rows", [
    "SELECT window_time AS w, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v, t, k) AS n FROM {tumble}) WHERE n <= 99",
    "SELECT a.window_time AS w, a.k, a.v FROM {tumble} a LEFT JOIN {tumble} b ON a.window_start = b.window_start AND a.window_end = b.window_end AND b.v < 0",
    "SELECT o.window_time AS w, a.k, a.v FROM (SELECT window_time, window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE once, DESCRIPTOR(t), "
    "INTERVAL '10' SECOND)) GROUP BY window_start, window_end, window_time) o JOIN {tumble} a ON a.window_start = o.window_start AND a.window_end = o.window_end"])
@pytest.mark.parametrize("above", [
    "SELECT k, v, COUNT(*) OVER (ORDER BY w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n FROM ({rows})",
    "SELECT x.k, x.v FROM ({rows}) x LEFT JOIN ({rows}) y ON x.k = y.k AND y.w BETWEEN x.w - INTERVAL '0.5' SECOND AND x.w AND x.v = -y.v",
    "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, v ORDER BY w) AS n FROM ({rows})) WHERE n <= 99",
    "SELECT MIN(k) AS k, SUM(v) AS v FROM ({rows}) GROUP BY TUMBLE(w, INTERVAL '10' SECOND), k, v"])
def test_what_waits_for_late_rows_is_in_time_for_what_is_above(clink, tmp_path, above, rows, batch):
    """Windows that are said when the lateness is over, too, hold back the watermark as long: nothing above them is late, and nothing changes."""
    rnd = random.Random(SEED)
    data = [(1000 * i - rnd.randrange(25_000), rnd.choice("ab"), i + 1) for i in range(120)]
    write(tmp_path / "src.ndjson", data)
    rows = rows.format(tumble="TABLE(TUMBLE(TABLE src, DESCRIPTOR(t), INTERVAL '10' SECOND))")
    got = clink("run", "--changes", "--set", f"batch_rows={batch}", "-e", table("src.ndjson", 0, ", allowed_lateness_ms='26000'") +
                table("src.ndjson", 26_000).replace("TABLE src", "TABLE once") + above.format(rows=rows))
    assert "late" not in got.err and sorted((r["k"], r["v"]) for r in got.rows) == sorted((k, v) for _, k, v in data)


@pytest.mark.parametrize("p,batch", [(1, 0), (2, 7), (4, 1)])
@pytest.mark.parametrize("n", [1, 3])
def test_windows_and_joins_over_first_rows_of_input_that_ends(clink, tmp_path, n, p, batch):
    """The first rows of a key are event time for what is above, as where input goes on; alone they are said at the end."""
    print(f"CLINK_SEED={SEED}")
    data = disordered(random.Random(SEED), 600, 300_000, 5000)
    write(tmp_path / "src.ndjson", data)
    firsts = [x for k in {x[1] for x in data} for x in sorted(x for x in data if x[1] == k)[:n]]
    rows = f"(SELECT t, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t, k, v) AS r FROM src) WHERE r <= {n})"
    run = lambda sql: clink("run", "-p", p, *settings(batch), "-e", table("src.ndjson", 5000) + sql).rows
    got = run(f"SELECT window_end AS e, COUNT(*) AS n, SUM(v) AS v FROM {rows} GROUP BY TUMBLE(t, INTERVAL '10' SECOND)")
    want = collections.defaultdict(list)
    for t, _, v in firsts:
        want[aligned(t, 10_000) + 10_000].append(v)
    assert sorted((r["e"], r["n"], r["v"]) for r in got) == sorted((iso(e), len(v), sum(v)) for e, v in want.items())
    got = run(f"SELECT a.k, a.v, SUM(b.v) AS s FROM {rows} a JOIN src b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + 9000 GROUP BY a.k, a.t, a.v")
    sums = collections.defaultdict(int)
    for t, k, v in firsts:
        sums[k, t, v] += sum(x[2] for x in data if x[1] == k and t <= x[0] <= t + 9000)
    assert sorted((r["k"], r["v"], r["s"]) for r in got) == sorted((k, v, s) for (k, t, v), s in sums.items())
    assert "final" in clink("explain", "-e", table("src.ndjson", 5000) + f"SELECT * FROM {rows}").out
