"""Random queries over event time, nodes over nodes - windows over windows, ranks, OVER, joins of every kind - against DuckDB, over disorder within
the delay or within the allowed lateness, which must then give the same in the end.
Queries come from a printed seed (CLINK_SEED); one that differs is shown with the fewest rows found that still do."""
import collections
import datetime
import itertools
import json
import os
import random

import duckdb
import pytest
from conftest import run_clink

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
CASES = 150 if os.environ.get("CLINK_LONG") else 12
RUNS = [("-p", 1, "--set", "batch_rows=1"), ("-p", 4, "--set", "batch_rows=7")]
COLUMNS, WINDOW = "t, k, v, w", "t, k, v, w, window_start, window_end, window_time"
CALLS = ("COUNT(*)", "SUM(v)", "MIN(w)", "MAX(v)", "COUNT(DISTINCT v)", "SUM(w) FILTER (WHERE v > 1)", "COUNT(v)", "SUM(DISTINCT v)")


def interval(ms):
    return f"INTERVAL '{'-' if ms < 0 else ''}{abs(ms) // 1000}.{abs(ms) % 1000:03d}' SECOND"


def text_of(ms):
    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")


class Query:
    """Each node is (SQL here, SQL of DuckDB, whether rows have a window): columns t, k, v, w, of which t is event time."""

    def __init__(self, seed, lateness):
        self.rnd, self.lateness, self.views = random.Random(seed), lateness, []
        self.names = (f"q{i}" for i in itertools.count())
        self.unit = self.rnd.choice([1, 100, 1000, 60_000])
        self.tables = {name: self.rows() for name in "ab"}
        self.tables["r"] = self.versions()
        depth = self.rnd.choice([1, 2, 2])
        self.sql, self.oracle, _ = self.node(depth)

    def rows(self):
        rnd, at, out, bound = self.rnd, -30 * self.unit, [], self.rnd.choice([0, 5, 30])
        for i in range(rnd.choice([0, 10, 60, 120])):
            at += rnd.choice([0, 0, 1, 1, 2, 5, rnd.choice([0, 40])]) * self.unit
            row = {"t": text_of(at) if rnd.random() > 0.04 else None, "k": rnd.choice(["x", "y", "z", None]), "v": rnd.choice([None, 1, 2, rnd.randrange(-50, 50)]), "w": i}
            out.append((at + rnd.random() * bound * self.unit, row))
        return [row for _, row in sorted(out, key=lambda x: x[0])], (bound + 1) * self.unit

    def versions(self):
        rnd, at, seen = self.rnd, -30 * self.unit, {}
        for i in range(rnd.choice([0, 3, 40])):
            at += rnd.choice([1, 3, 10, 30]) * self.unit
            seen[at] = {"t": text_of(at), "k": rnd.choice("xyz"), "v": rnd.choice([None, rnd.randrange(100)]), "w": i}
        return list(seen.values()), self.unit

    # ---- nodes ----

    def both(self, text, *nodes, windowed):
        """The same text over nodes, {0} and {1}."""
        return text.format(*(n[0] for n in nodes)), text.format(*(n[1] for n in nodes)), windowed

    def sized(self):
        rnd = self.rnd
        kind, slide = rnd.choice(["TUMBLE", "HOP", "CUMULATE"]), rnd.randrange(1, 12)
        size = slide * rnd.choice([1, 2, 3, 8, 16]) if kind == "CUMULATE" or rnd.random() < 0.6 else rnd.randrange(1, 40)
        offset = rnd.choice([0, 0, rnd.randrange(-30, 30)])
        return kind, (size if kind == "TUMBLE" else slide) * self.unit, size * self.unit, offset * self.unit

    def in_windows(self, inner, kind, slide, size, offset):
        """Of DuckDB: a row for each of its windows."""
        a, unit = next(self.names), size if kind == "CUMULATE" else slide
        first = f"(epoch_ms(t) - {offset} - (((epoch_ms(t) - {offset}) % {unit}) + {unit}) % {unit} + {offset})"
        ends = f"range({first} + {slide}, {first} + {size} + 1, {slide})" if kind == "CUMULATE" else f"range({first} + {size}, {first}, -{slide})"
        start = first if kind == "CUMULATE" else f"e - {size}"
        return (f"SELECT {COLUMNS}, make_timestamp(({start}) * 1000) AS window_start, make_timestamp(e * 1000) AS window_end, make_timestamp((e - 1) * 1000) AS window_time "
                f"FROM (SELECT {COLUMNS}, UNNEST({ends}) AS e FROM ({inner}) {a} WHERE t IS NOT NULL) {a}e WHERE e > epoch_ms(t)")

    def windowed(self, n, sized=None):
        kind, slide, size, offset = sized or self.sized()
        sizes = ([interval(slide)] if kind != "TUMBLE" else []) + [interval(size)] + ([interval(offset)] if offset else [])
        here = f"SELECT {WINDOW} FROM TABLE({kind}(TABLE (SELECT {COLUMNS} FROM ({n[0]}) {next(self.names)}), DESCRIPTOR(t), {', '.join(sizes)}))"
        return here, self.in_windows(n[1], kind, slide, size, offset), True

    def calls(self, keyed):
        x, y = self.rnd.choice(CALLS), self.rnd.choice(CALLS)
        return f"{'k' if keyed else 'CAST(NULL AS VARCHAR)'} AS k, CAST({x} AS BIGINT) AS v, CAST({y} AS BIGINT) AS w"

    def grouped(self, n):
        a, keyed = next(self.names), self.rnd.random() < 0.7
        if self.rnd.random() < 0.2:
            return self.both(f"SELECT window_time AS t, k, v, CAST(NULL AS BIGINT) AS w, window_start, window_end, window_time FROM "
                             f"(SELECT DISTINCT k, v, window_start, window_end, window_time FROM ({{0}}) {a}) {a}d", n, windowed=True)
        return self.both(f"SELECT window_time AS t, {self.calls(keyed)}, window_start, window_end, window_time FROM ({{0}}) {a} "
                         f"GROUP BY window_start, window_end, window_time{', k' if keyed else ''} {self.rnd.choice(['', 'HAVING COUNT(*) > 1'])}", n, windowed=True)

    def session(self, n):
        a, keyed, gap = next(self.names), self.rnd.random() < 0.7, self.rnd.choice([1, 2, 5, 10]) * self.unit
        calls, by, part = self.calls(keyed), ", k" if keyed else "", "PARTITION BY k " if keyed else ""
        table = f"TABLE (SELECT {COLUMNS} FROM ({n[0]}) {a}q) {part}"
        here = (f"SELECT window_time AS t, {calls}, window_start, window_end, window_time FROM TABLE(SESSION({table}, DESCRIPTOR(t), {interval(gap)})) "
                f"GROUP BY window_start, window_end, window_time{by}")
        begins = f"CASE WHEN before IS NULL OR t >= before + {interval(gap)} THEN 1 ELSE 0 END"
        numbered = (f"SELECT *, SUM({begins}) OVER ({part}ORDER BY t RANGE UNBOUNDED PRECEDING) AS number FROM "
                    f"(SELECT *, LAG(t) OVER ({part}ORDER BY t) AS before FROM ({n[1]}) {a} WHERE t IS NOT NULL) {a}b")
        there = f"SELECT {calls}, MIN(t) AS window_start, MAX(t) + {interval(gap)} AS window_end, MAX(t) + {interval(gap - 1)} AS window_time FROM ({numbered}) {a}n GROUP BY number{by}"
        return here, f"SELECT window_time AS t, k, v, w, window_start, window_end, window_time FROM ({there}) {a}s", True

    def top(self, n):
        rnd, a = self.rnd, next(self.names)
        fn = rnd.choice(["ROW_NUMBER", "RANK", "DENSE_RANK"])
        order = f"{rnd.choice('vwt')} {rnd.choice(['', 'DESC'])}" + (", v, w, t, k" if fn == "ROW_NUMBER" else "")
        return self.both(f"SELECT window_time AS t, k, v, place AS w, window_start, window_end, window_time FROM (SELECT *, {fn}() OVER (PARTITION BY window_start, window_end"
                         f"{rnd.choice(['', ', k'])} ORDER BY {order}) AS place FROM ({{0}}) {a}) {a}p WHERE place <= {rnd.randrange(1, 4)}", n, windowed=True)

    def window_join(self, x, y):
        sized = self.sized()
        sides = [self.windowed(n, sized) for n in (x, y)]
        sides = [self.grouped(n) if self.rnd.random() < 0.5 and not self.lateness else n for n in sides]
        on = "L.window_end = R.window_end AND L.window_start = R.window_start" + self.rnd.choice(["", " AND L.k = R.k", " AND L.v = R.v AND L.w <> R.w"])
        a, b = next(self.names), next(self.names)
        kind, on = self.rnd.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "EXISTS", "NOT EXISTS"]), on.replace("L.", a + ".").replace("R.", b + ".")
        if "EXISTS" in kind:
            return self.both(f"SELECT window_time AS t, k, v, w, window_start, window_end, window_time FROM ({{0}}) {a} WHERE {kind} (SELECT 1 FROM ({{1}}) {b} WHERE {on})", *sides, windowed=True)
        of = b if kind == "RIGHT JOIN" else a
        return self.both(f"SELECT {of}.window_time AS t, {a}.k, {b}.v, {a}.w, {of}.window_start, {of}.window_end, {of}.window_time FROM ({{0}}) {a} {kind} ({{1}}) {b} ON {on}", *sides, windowed=True)

    def time_join(self, x, y):
        a, b, rnd = next(self.names), next(self.names), self.rnd
        low = rnd.randrange(-30, 20) * self.unit
        high = low + rnd.randrange(30) * self.unit
        below = rnd.choice([f"<= {a}.t + {interval(high)}", f"< {a}.t + {interval(high + 1)}"])
        on = f"{a}.k = {b}.k AND {b}.t >= {a}.t + {interval(low)} AND {b}.t {below}" + rnd.choice(["", "", f" AND {a}.v < {b}.v"])
        kind = rnd.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "EXISTS", "NOT EXISTS"])
        sides = [self.both(f"SELECT {COLUMNS} FROM ({{0}}) {next(self.names)} WHERE t IS NOT NULL", n, windowed=False) for n in (x, y)]
        if "EXISTS" in kind:
            return self.both(f"SELECT {COLUMNS} FROM ({{0}}) {a} WHERE {kind} (SELECT 1 FROM ({{1}}) {b} WHERE {on})", *sides, windowed=False)
        of = b if kind == "RIGHT JOIN" else a
        return self.both(f"SELECT {of}.t, {of}.k, {b}.v, {a}.w FROM ({{0}}) {a} {kind} ({{1}}) {b} ON {on}", *sides, windowed=False)

    def as_of(self, n):
        a, b, kind = next(self.names), next(self.names), self.rnd.choice(["JOIN", "LEFT JOIN"])
        rows = f"(SELECT {COLUMNS} FROM ({{0}}) {a}n WHERE t IS NOT NULL) {a}"
        here = f"SELECT {a}.t, {a}.k, {b}.v, {a}.w FROM {rows} {kind} r FOR SYSTEM_TIME AS OF {a}.t AS {b} ON {a}.k = {b}.k"
        there = (f"SELECT {a}.t, {a}.k, {b}.v, {a}.w FROM {rows} {kind} (SELECT *, LEAD(t) OVER (PARTITION BY k ORDER BY t) AS until FROM r) {b} "
                 f"ON {a}.k = {b}.k AND {a}.t >= {b}.t AND ({b}.until IS NULL OR {a}.t < {b}.until)")
        return here.format(n[0]), there.format(n[1]), False

    def over(self, n):
        a, rnd = next(self.names), self.rnd
        rows, calls = rnd.random() < 0.5, ["SUM(v)", "COUNT(*)", "MIN(v)", "MAX(w)", "COUNT(v)"]
        call = rnd.choice(calls + ["FIRST_VALUE(w)", "LAST_VALUE(v)"] if rows else calls)
        back = rnd.choice(["UNBOUNDED", rnd.randrange(8) if rows else interval(rnd.choice([0, 1, 5, 20]) * self.unit)])
        frame = f"{'t, k, v, w ROWS' if rows else 't RANGE'} BETWEEN {back} PRECEDING AND CURRENT ROW"
        return self.both(f"SELECT t, k, CAST({call} OVER ({rnd.choice(['', 'PARTITION BY k '])}ORDER BY {frame}) AS BIGINT) AS v, w "
                         f"FROM (SELECT {COLUMNS} FROM ({{0}}) {a}n) {a} WHERE t IS NOT NULL", n, windowed=False)

    def first(self, n):
        a = next(self.names)
        return self.both(f"SELECT {COLUMNS} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t, v, w, k) AS place FROM "
                         f"(SELECT {COLUMNS} FROM ({{0}}) {a}n WHERE t IS NOT NULL) {a}) {a}p WHERE place <= {self.rnd.randrange(1, 4)}", n, windowed=False)

    def filtered(self, n):
        columns = WINDOW if n[2] else COLUMNS
        return self.both(f"SELECT {columns} FROM ({{0}}) {next(self.names)} WHERE {self.rnd.choice(['v > 1', 'k IS NOT NULL', 'w % 2 = 0', 'v IS NULL OR v < 3'])}", n, windowed=n[2])

    def union(self, x, y):
        a = next(self.names)
        return self.both(f"SELECT {COLUMNS} FROM ({{0}}) {a} UNION ALL SELECT {COLUMNS} FROM ({{1}}) {a}u", x, y, windowed=False)

    def waits(self):
        """Rows of windows that are said once, when the lateness is over, too."""
        n = self.windowed(self.source())
        return self.top(n) if self.rnd.random() < 0.5 else self.window_join(self.source(), self.source())

    def source(self):
        text = f"SELECT {COLUMNS} FROM {self.rnd.choice('ab')}"
        return text, text, False

    def node(self, depth):
        if depth == 0:
            return self.source()
        sub, make = lambda: self.node(depth - 1), self.rnd.choice
        strict = {"over": lambda n: self.over(n()), "time_join": lambda n: self.time_join(n(), n()), "as_of": lambda n: self.as_of(n()), "first": lambda n: self.first(n())}
        kind = make(["filtered", "union", "windowed", "grouped", "grouped", "session", "top", "window_join", "strict", "strict", "strict"])
        if kind == "strict":  # these take no late rows: with lateness over what waits for them
            return strict[make(list(strict))](self.waits if self.lateness else sub)
        if kind == "grouped":
            n = sub()
            return self.grouped(n if n[2] and make([True, False]) else self.windowed(n))
        if kind == "session":
            return self.session(self.source() if self.lateness else sub())
        if kind == "top":
            return self.top(self.windowed(sub()))
        return getattr(self, kind)(sub(), sub()) if kind in ("union", "window_join") else getattr(self, kind)(sub())

    # ---- running ----

    def run(self, tables, folder, how):
        ddl = ""
        for name, (rows, bound) in tables.items():
            (folder / f"{name}.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
            late = self.lateness and name != "r"
            ddl += (f"CREATE TABLE {name} (t TIMESTAMP(3), k VARCHAR, v BIGINT, w BIGINT{', PRIMARY KEY (k) NOT ENFORCED' if name == 'r' else ''}, WATERMARK FOR t AS t - "
                    f"{interval(0 if late else bound)}) WITH (connector='file', path='{name}.ndjson'{f', allowed_lateness_ms={bound}' if late else ''});\n")
        r = run_clink("run", *how, "--changes=json", "-e", ddl + f"SELECT {COLUMNS} FROM ({self.sql}) q", cwd=folder, ok=False)
        if r.code:
            return r.err
        left = collections.Counter()
        for line in r.lines:
            op, t, k, v, w = json.loads(line).values()
            left[t and (t + ".000")[:23], k, v, w] += -1 if op in ("-U", "-D") else 1
        return {row: n for row, n in left.items() if n}

    def want(self, tables):
        c = duckdb.connect()
        c.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        for name, (rows, _) in tables.items():
            c.execute(f"CREATE TABLE {name} (t TIMESTAMP, k VARCHAR, v BIGINT, w BIGINT)")
            if rows:
                c.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", [tuple(r.values()) for r in rows])
        got = c.execute(f"SELECT {COLUMNS} FROM ({self.oracle}) q").fetchall()
        return dict(collections.Counter((t and t.isoformat(timespec="milliseconds"), k, v, w) for t, k, v, w in got))

    def differs(self, tables, folder, how):
        got, want = self.run(tables, folder, how), self.want(tables)
        return None if got == want else (got, want)

    def shrunk(self, folder, how):
        tables = dict(self.tables)
        for name in tables:
            size = (len(tables[name][0]) + 1) // 2
            while size:
                rows, bound = tables[name]
                for at in range(0, len(rows), size):
                    less = {**tables, name: (rows[:at] + rows[at + size:], bound)}
                    if self.differs(less, folder, how):
                        tables = less
                        break
                else:
                    size //= 2
        return tables


REFUSED = ("is not event time here", "takes rows that do not change", "over rows that do not change")


@pytest.mark.parametrize("lateness", [False, True])
def test_queries_over_event_time(tmp_path, lateness):
    refused = 0
    for number in range(CASES):
        seed = f"{SEED} {lateness} {number}"
        q = Query(seed, lateness)
        for how in RUNS:
            wrong = q.differs(q.tables, tmp_path, how)
            if wrong and isinstance(wrong[0], str) and any(r in wrong[0] for r in REFUSED):
                refused += 1
                break
            if wrong:
                tables = q.shrunk(tmp_path, how)
                got, want = q.differs(tables, tmp_path, how)
                pytest.fail(f"CLINK_SEED={SEED}, query {number}, {how}\n{q.sql}\nDuckDB: {q.oracle}\n{tables}\ngot  {got}\nwant {want}")
    assert refused <= CASES // 2
