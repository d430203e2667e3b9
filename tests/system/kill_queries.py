"""What the kill matrix asks (kill_matrix.py): queries whose result does not depend on when what arrives, and their input."""
import collections
import os
import random
import subprocess
import threading

from conftest import TOP, read_texts

SRC = """CREATE TABLE src (i BIGINT NOT NULL, k VARCHAR, g BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (connector='file', format='json', path='{inp}/in.ndjson'{rate});
CREATE TABLE other (i BIGINT NOT NULL, k VARCHAR, g BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (connector='file', format='json', path='{inp}/other.ndjson'{rate});
"""


class Query:
    """columns: of the sink. key: it is an upsert sink. rows: of the input. limit: so many rows come, any of them. changes: results
    are emitted while they change. slow: its queues are full, so that something is under way when a barrier overtakes; that
    wants enough rows to last for several checkpoints on a machine with nothing else to do."""

    def __init__(self, name, columns, select, key="", rows=6000, limit=None, changes=False, slow=False):
        self.name, self.columns, self.select, self.key, self.rows = name, columns, select, key, rows
        self.limit, self.changes, self.slow = limit, changes, slow

    def write(self, folder, inp, rate):
        """What the job needs, in its folder: the arguments of `run` and the environment."""
        with open(os.path.join(folder, "job.sql"), "w") as f:
            f.write(self.script(inp, os.path.join(folder, "out"), rate))
        return [os.path.join(folder, "job.sql"), *(["--changes"] if self.changes else [])], {}

    def settled(self, rows):
        """Rows that come to the same, however many there are."""
        return rows

    def script(self, inp, out, rate):
        key = f", PRIMARY KEY ({self.key}) NOT ENFORCED" if self.key else ""
        mode = ", mode='upsert'" if self.key else ""
        opt = f", rate_limit='{rate}'" if rate else ""
        return (SRC.format(inp=inp, rate=opt) +
                f"CREATE TABLE snk ({self.columns}{key}) WITH (connector='file', format='csv', path='{out}'{mode});\n"
                f"INSERT INTO snk {self.select};\n")


class Plugin(Query):
    """A job of tests/plugins/tumbles.c: value, map and list state of a plugin, timers of event time and of the clock."""
    lock = threading.Lock()

    def write(self, folder, inp, rate):
        plugin = os.path.join(inp, "tumbles.so")
        with self.lock:
            if not os.path.exists(plugin):
                subprocess.run(["gcc", "-std=c17", "-O2", "-shared", "-fPIC", f"-I{TOP}/include", f"{TOP}/tests/plugins/tumbles.c", "-o", plugin], check=True)
        if not os.path.exists(os.path.join(folder, "in.ndjson")):
            os.symlink(os.path.join(inp, "in.ndjson"), os.path.join(folder, "in.ndjson"))
        return ["--job", plugin], {"RATE": str(rate or "")}

    def settled(self, rows):
        """The clock hands out shares: how large each is depends on when it struck."""
        out, shares = collections.Counter(), {}
        for line, times in rows.items():
            kind, k, _, n, s = line.split(",")
            if kind == "share":
                before = shares.get(k, (0, 0))
                shares[k] = (before[0] + times * int(n), before[1] + times * int(s))
            else:
                out[line] = times
        out.update(f"shares,{k},{n},{s}" for k, (n, s) in shares.items())
        return out


QUERIES = {q.name: q for q in (
    Query("text", "k VARCHAR, n BIGINT, s BIGINT", "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM src GROUP BY k", "k", changes=True),
    Query("bigint", "g BIGINT, n BIGINT, s BIGINT", "SELECT g, COUNT(*) AS n, SUM(v) AS s FROM src GROUP BY g"),
    Query("two", "k VARCHAR, g BIGINT, n BIGINT", "SELECT k, g, COUNT(*) AS n FROM src GROUP BY k, g", "k, g", changes=True),
    Query("window", "k VARCHAR, w TIMESTAMP, n BIGINT, s BIGINT",
          "SELECT k, window_start AS w, COUNT(*) AS n, SUM(v) AS s FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
          " GROUP BY k, window_start, window_end"),
    Query("window_top", "w TIMESTAMP, k VARCHAR, s BIGINT, r BIGINT",
          "SELECT w, k, s, r FROM (SELECT *, RANK() OVER (PARTITION BY w, e ORDER BY s DESC) AS r FROM (SELECT k, window_start AS w,"
          " window_end AS e, SUM(v) AS s FROM TABLE(HOP(TABLE src, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
          " GROUP BY k, window_start, window_end)) WHERE r <= 2"),
    Query("window_first", "k VARCHAR, w TIMESTAMP, i BIGINT",
          "SELECT k, window_start AS w, i FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY ts, i)"
          " AS n FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '10' SECOND))) WHERE n = 1"),
    Query("window_join", "k VARCHAR, w TIMESTAMP, i BIGINT, o BIGINT",
          "SELECT COALESCE(a.k, b.k) AS k, COALESCE(a.window_start, b.window_start) AS w, a.i, b.i AS o FROM"
          " TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '5' SECOND)) a FULL JOIN"
          " TABLE(TUMBLE(TABLE other, DESCRIPTOR(ts), INTERVAL '5' SECOND)) b"
          " ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end", changes=True),
    Query("clock", "k VARCHAR, n BIGINT, s BIGINT",  # windows as the clock has them: what they have in all is the same
          "SELECT k, SUM(n) AS n, SUM(s) AS s FROM (SELECT k, COUNT(*) AS n, SUM(v) AS s FROM TABLE(HOP(TABLE (SELECT *, PROCTIME() AS p"
          " FROM src), DESCRIPTOR(p), INTERVAL '0.01' SECOND, INTERVAL '0.03' SECOND)) GROUP BY k, window_start, window_end UNION ALL"
          " SELECT k, COUNT(*) AS n, SUM(v) AS s FROM (SELECT *, PROCTIME() AS p FROM src) GROUP BY SESSION(p, INTERVAL '0.02' SECOND), k)"
          " GROUP BY k", "k", changes=True),
    Query("over", "i BIGINT, k VARCHAR, n BIGINT, s BIGINT",
          "SELECT i, k, COUNT(*) OVER w AS n, SUM(v) OVER w AS s FROM src"
          " WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW)"),
    Query("hop", "k VARCHAR, w TIMESTAMP, n BIGINT, s BIGINT",  # subtasks are at different times when a barrier overtakes
          "SELECT k, window_start AS w, COUNT(*) AS n, SUM(v) AS s FROM TABLE(HOP(TABLE src, DESCRIPTOR(ts), INTERVAL '0.5' SECOND,"
          " INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end", rows=20000, slow=True),
    Query("interval", "i BIGINT, o BIGINT",
          "SELECT a.i, b.i AS o FROM src a JOIN other b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '20' SECOND AND a.ts"),
    Query("join", "k VARCHAR, n BIGINT, s BIGINT",
          "SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM src a JOIN other b ON a.k = b.k GROUP BY a.k", "k", changes=True),
    Query("diamond", "k VARCHAR, n BIGINT, s BIGINT",
          "SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM src a JOIN src b ON a.k = b.k GROUP BY a.k", "k", rows=12000, slow=True),
    Query("top", "k VARCHAR, i BIGINT, v BIGINT, r BIGINT",
          "SELECT k, i, v, r FROM (SELECT k, i, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, i) AS r FROM src) WHERE r <= 3",
          "k, r", changes=True),
    Query("limit", "i BIGINT, k VARCHAR", "SELECT i, k FROM src LIMIT 12000", rows=15000, limit=12000),
    Query("having", "i BIGINT, n BIGINT", "SELECT v AS i, COUNT(*) AS n FROM src WHERE v > 500 GROUP BY v HAVING COUNT(*) < 3", "i",
          changes=True),
    Query("distinct", "k VARCHAR, g BIGINT", "SELECT DISTINCT k, g FROM src"),
    Plugin("plugin", "", ""),
)}
if os.environ.get("CLINK_KILL_LARGE"):  # as many rows as the limit is meant for
    QUERIES["limit"] = Query("limit", "i BIGINT, k VARCHAR", "SELECT i, k FROM src LIMIT 1200000", rows=1500000, limit=1200000)


def make_rows(path, rows, salt):
    rnd = random.Random(salt)
    with open(path, "w") as f:
        for i in range(rows):
            at = i // 20
            f.write('{"i":%d,"k":"customer number %d","g":%d,"v":%d,"ts":"2026-01-01 %02d:%02d:%02d"}\n' % (
                i, rnd.randrange(60), rnd.randrange(-20, 20), rnd.randrange(1000), at // 3600 % 24, at // 60 % 60, at % 60))


def rows_in(folder):
    return collections.Counter(line for _, text in read_texts(folder) for line in text.split("\n")[:-1])


