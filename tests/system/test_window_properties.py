"""Random windows over random disorder against a model of a few lines: kinds, sizes, offsets, delays, lateness, DISTINCT, times before
1970, times that are none.
Cases come from a printed seed (CLINK_SEED), and one that fails is shrunk to few rows before it is shown."""
import collections
import json
import os
import random

import pytest
from conftest import run_clink
from test_windows import SEED, aligned, iso

CASES = 200 if os.environ.get("CLINK_LONG") else 12
KINDS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")


class Case:
    def __init__(self, rnd, kind):
        self.kind, self.unit = kind, rnd.choice([1, 10, 1000, 3_600_000])
        self.slide = rnd.randrange(1, 12)
        self.size = self.slide * rnd.randrange(1, 6) if kind == "CUMULATE" else rnd.randrange(1, 30)
        self.offset = rnd.choice([0, 0, rnd.randrange(-40, 40)])
        self.third = rnd.choice([("MIN(v)", min), ("COUNT(v)", len), ("SUM(v * 3)", lambda v: 3 * sum(v))])
        self.lag, self.lateness = rnd.choice([0, 0, rnd.randrange(40)]), rnd.choice([0, 0, rnd.randrange(1, 30)])
        if kind in ("TUMBLE", "SESSION"):
            self.slide = self.size
        if kind == "SESSION":
            self.offset = 0
        self.distinct = rnd.random() < 0.5
        at, self.rows = rnd.randrange(-2000, 2000), []
        for n in range(rnd.randrange(1, 120)):
            at += rnd.choice([0, 1, 1, 2, 5, rnd.randrange(-60, 60), rnd.choice([0, 500])])
            t = rnd.choice([None, (1 << 63) - 1, -(1 << 63)]) if rnd.random() < 0.03 else at * self.unit
            self.rows.append((t, rnd.choice("ab"), n))

    def call(self):
        ms = lambda n: f"INTERVAL '{n * self.unit // 1000}.{n * self.unit % 1000:03d}' SECOND" if n >= 0 else f"-{ms(-n)}"
        sizes = [ms(self.slide), ms(self.size)] if self.kind in ("HOP", "CUMULATE") else [ms(self.size)]
        return f"{self.kind}({', '.join(['t', *sizes] + ([ms(self.offset)] if self.offset else []))})"

    def windows(self, t):
        size, slide, offset = (x * self.unit for x in (self.size, self.slide, self.offset))
        if self.kind == "CUMULATE":
            s = aligned(t, size, offset)
            return [(s, e) for e in range(s + slide, s + size + 1, slide) if e > t]
        first = aligned(t, slide, offset)
        return [(s, s + size) for s in range(first, first - size, -slide) if s + size > t]


def usable(t):
    return t is not None and -62135596800000 <= t <= 253402300799999


def sessions(c, rows, time_of):
    """Those of one key that are not closed, as they change row by row; -> ({(key, start, end, number): rows}, late rows)."""
    gap, lateness, live, said, late = c.size * c.unit, c.lateness * c.unit, collections.defaultdict(list), {}, []

    def say(until):
        for k, of in live.items():
            for s in [s for s in of if s[1] + lateness <= until]:
                said[k, s[0], s[1], len(said)] = s[2]
                of.remove(s)
    for t, k, n in rows:
        now = time_of(t)
        if not usable(t):
            continue
        hit = [s for s in live[k] if s[0] < t + gap and t < s[1]]
        if not hit and now[0] is not None and t + gap + lateness <= now[0]:
            late.append(n)
        else:
            live[k] = [s for s in live[k] if s not in hit]
            live[k].append((min([t, *(s[0] for s in hit)]), max([t + gap, *(s[1] for s in hit)]), sorted(sum((s[2] for s in hit), [n]))))
        say(now[1])
    say(float("inf"))
    return said, late


def model(c, rows):
    """({(key, start, end): numbers of its rows}, numbers of late rows), when each row is a batch of its own."""
    top = [None]

    def time_of(t):
        """What the watermark has passed before and after this row."""
        before = None if top[0] is None else top[0] - c.lag * c.unit
        if usable(t):
            top[0] = t if top[0] is None else max(top[0], t)
        return before, None if top[0] is None else top[0] - c.lag * c.unit
    if c.kind == "SESSION":
        return sessions(c, rows, lambda t: (lambda x: (x[0], float("-inf") if x[1] is None else x[1]))(time_of(t)))
    groups, late = collections.defaultdict(list), []
    for t, k, n in rows:
        passed = time_of(t)[0]
        if not usable(t):
            continue
        of = c.windows(t)
        still = [w for w in of if passed is None or w[1] + c.lateness * c.unit > passed]
        if of and not still:
            late.append(n)
        for w in still:
            groups[k, *w].append(n)
    return dict(groups), late


def run(c, rows, d):
    with open(d / "src.ndjson", "w") as f:
        f.writelines(json.dumps({"t": t, "k": k, "v": v}) + "\n" for t, k, v in rows)
    for name in os.listdir(d / "late") if (d / "late").exists() else []:
        (d / "late" / name).unlink()
    lateness = f", allowed_lateness_ms='{c.lateness * c.unit}'" if c.lateness else ""
    got = run_clink("run", "--set", "batch_rows=1", "--changes=json", "-e",
                    "CREATE TABLE late (v BIGINT) WITH (connector='file', format='json', path='late');"
                    "CREATE TABLE src (t BIGINT, k VARCHAR, v BIGINT) WITH (connector='file', path='src.ndjson', event_time_column='t', "
                    f"watermark_lag_ms='{c.lag * c.unit}', late_table='late'{lateness});"
                    f"SELECT k, window_start AS s, window_end AS e, COUNT(*) AS n, SUM(v) AS v, {c.third[0]} AS lo, "
                    f"COUNT({'DISTINCT' if c.distinct else ''} v % 3) AS d, COUNT({'DISTINCT' if c.distinct else ''} v % 3) FILTER (WHERE v > 20) AS f FROM src GROUP BY {c.call()}, k", cwd=d)
    net = collections.Counter()
    for line in got.lines:
        op, *values = json.loads(line).values()
        net[tuple(values)] += -1 if op in ("-U", "-D") else 1
    assert all(n >= 0 for n in net.values())
    late = [json.loads(x)["v"] for f in (d / "late").iterdir() if f.name[0] != "." for x in f.read_text().splitlines()] if (d / "late").exists() else []
    return +net, sorted(late)


def differs(c, rows, d):
    groups, late = model(c, rows)
    want = collections.Counter((k, iso(s), iso(e), len(v), sum(v), c.third[1](v), *(len({x % 3 for x in w} if c.distinct else w) for w in (v, [x for x in v if x > 20])))
                               for (k, s, e, *_), v in groups.items())
    got = run(c, rows, d)
    return None if got == (want, sorted(late)) else (got, (want, sorted(late)))


def shrink(c, rows, d):
    """Fewer rows that still differ."""
    size = len(rows) // 2
    while size:
        for at in range(0, len(rows), size):
            less = rows[:at] + rows[at + size:]
            if less and differs(c, less, d):
                rows = less
                break
        else:
            size //= 2
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_windows_are_as_the_model_says(tmp_path, kind):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(f"{SEED} {kind}")
    for number in range(CASES):
        c = Case(rnd, kind)
        if differs(c, c.rows, tmp_path):
            rows = shrink(c, c.rows, tmp_path)
            got, want = differs(c, rows, tmp_path)
            pytest.fail(f"case {number}: {c.call()}, delay {c.lag * c.unit}, lateness {c.lateness * c.unit}, rows {rows}\ngot  {got}\nwant {want}")
