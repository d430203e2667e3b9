"""The two engines: libclink through ctypes and DuckDB, over the same rows; and whether two results are the same."""
import ctypes
import datetime
import decimal
import json
import math
import os
import random
import sys
import threading
import time

import duckdb
import pyarrow as pa

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "examples"))
import embed  # noqa: E402

JSON = ("bids", "orders")
DUCK_TYPES = {"ARRAY<VARCHAR>": "VARCHAR[]", "ARRAY<BIGINT>": "BIGINT[]", "MAP<VARCHAR, BIGINT>": "MAP(VARCHAR, BIGINT)",
              "ROW<city VARCHAR, zip BIGINT>": "STRUCT(city VARCHAR, zip BIGINT)"}
DDL = {
    "flights": """month BIGINT, day BIGINT, dep_time BIGINT, dep_delay BIGINT, arr_delay BIGINT, carrier VARCHAR, flight BIGINT, tailnum VARCHAR,
        origin VARCHAR, dest VARCHAR, air_time BIGINT, distance BIGINT, hour BIGINT, time_hour TIMESTAMP""",
    "planes": "tailnum VARCHAR, year BIGINT, manufacturer VARCHAR, engines BIGINT, seats BIGINT, engine VARCHAR",
    "airports": "faa VARCHAR, name VARCHAR, lat DOUBLE, lon DOUBLE, alt BIGINT, tz BIGINT, dst VARCHAR",
    "orders": "id BIGINT, day DATE, amount DECIMAL(12, 2), tags ARRAY<VARCHAR>, sizes ARRAY<BIGINT>, props MAP<VARCHAR, BIGINT>, ship ROW<city VARCHAR, zip BIGINT>",
    "bids": "auction BIGINT, bidder BIGINT, price DECIMAL(12, 2), channel VARCHAR, url VARCHAR, date_time TIMESTAMP",
}


class Run(ctypes.Structure):  # clink_run
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("name", ctypes.c_char_p), ("source_name", ctypes.c_char_p), ("parallelism", ctypes.c_uint32),
                ("key_groups", ctypes.c_uint32), ("output", ctypes.c_int), ("fd", ctypes.c_int32), ("changes", ctypes.c_int)]


class Clink(embed.Clink):
    def ask(self, sql, parallelism=1, changes=False):
        """Rows as tuples; with changes netted: what is left of inserts and deletions."""
        run = Run(ctypes.sizeof(Run), None, b"q", parallelism, 0, 0, 0, 2 if changes else 0)
        job, stream = ctypes.c_void_p(), embed.Stream()
        self._call(self.lib.clink_execute, self.engine, sql.encode(), ctypes.byref(run), ctypes.byref(job))
        if not job:
            return []
        try:
            if not self.lib.clink_job_has_result(job):
                self._call(self.lib.clink_job_wait, job, ctypes.c_int64(-1))
                return []
            self._call(self.lib.clink_job_stream, job, ctypes.byref(stream))
            try:
                table = pa.RecordBatchReader._import_from_c(ctypes.addressof(stream)).read_all()
            except (pa.ArrowException, OSError) as e:
                raise RuntimeError(str(e)) from None
        finally:
            self.lib.clink_job_free(job)
        columns = [c.to_pylist() for c in table.columns]
        rows = list(zip(*columns)) if columns else []
        return net(rows).rows() if changes and "op" in table.column_names[:1] else rows

    def ask_until(self, sql, parallelism, good, quiet=5.0):
        """Of a result that never ends: what is left of the changes once good(rows) holds, or when nothing has come for `quiet` seconds."""
        run = Run(ctypes.sizeof(Run), None, b"q", parallelism, 0, 0, 0, 2)
        job, stream = ctypes.c_void_p(), embed.Stream()
        self._call(self.lib.clink_execute, self.engine, sql.encode(), ctypes.byref(run), ctypes.byref(job))
        left, failure, lock, came = net([]), [], threading.Lock(), [time.monotonic()]
        self._call(self.lib.clink_job_stream, job, ctypes.byref(stream))
        reader = pa.RecordBatchReader._import_from_c(ctypes.addressof(stream))
        ops = "op" in reader.schema.names[:1]

        def read():
            try:
                for b in reader:
                    rows = list(zip(*[c.to_pylist() for c in b.columns]))
                    with lock:
                        left.add(rows if ops else [("+I", *r) for r in rows])
                        came[0] = time.monotonic()
            except (pa.ArrowException, OSError) as e:
                failure.append(str(e))

        t = threading.Thread(target=read)
        t.start()
        try:
            while True:
                with lock:
                    seen, at = left.version, came[0]
                    rows = left.rows() if seen != getattr(left, "looked", -1) else None
                    left.looked = seen
                if rows is not None and good(rows):
                    return rows
                if failure or not t.is_alive() or time.monotonic() - at > quiet:
                    break
                time.sleep(0.003)
            early = t.is_alive()
        finally:
            self.lib.clink_job_cancel(job)
            t.join()
            self.lib.clink_job_free(job)
        if failure and not early:
            raise RuntimeError(failure[0])
        return left.rows()


class net:
    """Changes netted: what is left of inserts and deletions."""

    def __init__(self, rows):
        self.left, self.version = {}, 0
        self.add(rows)

    def add(self, rows):
        for op, *row in rows:
            self.left.setdefault(freeze(row), [0, tuple(row)])[0] += 1 if op in ("+I", "+U") else -1
            self.version += 1

    def rows(self):
        wrong = [row for n, row in self.left.values() if n < 0]
        if wrong:
            raise RuntimeError(f"a row was taken back that never came: {wrong[0]}")
        return [row for n, row in self.left.values() for _ in range(n)]


def freeze(v):
    if isinstance(v, dict):
        v = list(v.items())
    if isinstance(v, (list, tuple)):
        return tuple(freeze(x) for x in v)
    return ("nan",) if isinstance(v, float) and math.isnan(v) else v


# ---- data ----

def make_bids(path, rows, seed):
    """The shape of NEXMark's bids."""
    r = random.Random(seed)
    channels, at = ["Apple", "Google", "Facebook", "Baidu", None], datetime.datetime(2013, 6, 1)
    with open(path, "w") as f:
        for _ in range(rows):
            at += datetime.timedelta(milliseconds=r.randint(0, 400000))
            f.write(json.dumps({"auction": r.randint(1, 40) if r.random() < 0.95 else None, "bidder": r.randint(1, 300),
                                "price": round(r.lognormvariate(4, 1), 2), "channel": r.choice(channels),
                                "url": f"https://www.nexmark.com/{r.randint(0, 99)}/item.htm?query=1", "date_time": at.isoformat()}) + "\n")


def make_orders(path, rows, seed):
    """Arrays, maps and rows, with NULLs outside and inside."""
    r = random.Random(seed)
    maybe = lambda v, p=0.1: None if r.random() < p else v
    words = ["A", "UA", "JFK", "ATL", "N5", "", "zz"]
    with open(path, "w") as f:
        for i in range(rows):
            order = {"id": maybe(r.randint(1, 300), 0.03), "day": str(datetime.date(2013, 1, 1) + datetime.timedelta(days=r.randint(0, 364))),
                     "amount": maybe(round(r.lognormvariate(3, 1), 2)), "tags": maybe([maybe(r.choice(words)) for _ in range(r.randint(0, 3))]),
                     "sizes": maybe([maybe(r.randint(-5, 20)) for _ in range(r.randint(0, 4))]), "props": maybe({k: maybe(r.randint(0, 30)) for k in "ab" if r.random() < 0.7}),
                     "ship": maybe({"city": maybe(r.choice(words)), "zip": maybe(r.randint(0, 50))})}
            f.write(json.dumps(order) + "\n")


def make_data(flights_dir, out, flights=2500, bids=1500, orders=400, seed=1):
    """Typed CSV files of a sample of the real data, and bids."""
    d = duckdb.connect()
    for name, ddl in DDL.items():
        if name in JSON:
            continue
        columns = [c.split() for c in ddl.split(",")]
        casts = ", ".join(f"CAST({n} AS {' '.join(t)}) AS {n}" for n, *t in columns)
        sample = f"USING SAMPLE reservoir({flights} ROWS) REPEATABLE ({seed})" if name == "flights" else ""
        src = f"read_csv('{flights_dir}/{name}.csv', nullstr='NA', header=true)"
        d.execute(f"COPY (SELECT {casts} FROM {src} {sample}) TO '{out}/{name}.csv' (HEADER, DELIMITER ',', NULLSTR 'NA')")
    make_bids(f"{out}/bids.ndjson", bids, seed)
    make_orders(f"{out}/orders.ndjson", orders, seed)


def for_duck(ddl):
    for ours, duck in DUCK_TYPES.items():
        ddl = ddl.replace(ours, duck)
    return ddl


def open_ours(library, data, more=""):
    ours = Clink(library)
    for name, ddl in DDL.items():
        form = "json" if name in JSON else "csv"
        extra = "" if name in JSON else ", header='true', null_string='NA'"
        ours.ask(f"CREATE TABLE {name} ({ddl}) WITH (connector='file', format='{form}', path='{data}/{name}.{'ndjson' if name in JSON else 'csv'}'{extra}{more})")
    return ours


def open_duck(data):
    duck = duckdb.connect()
    for name, ddl in DDL.items():
        duck.execute(f"CREATE TABLE {name} ({for_duck(ddl)})")
        if name in JSON:
            types = dict((n, t) for n, t, *_ in duck.execute(f"DESCRIBE {name}").fetchall())
            columns = "{" + ", ".join(f"'{n}': '{t}'" for n, t in types.items()) + "}"
            duck.execute(f"INSERT INTO {name} SELECT * FROM read_json('{data}/{name}.ndjson', format='newline_delimited', columns={columns})")
        else:
            duck.execute(f"INSERT INTO {name} SELECT * FROM read_csv('{data}/{name}.csv', nullstr='NA', header=true)")
    return duck


# ---- comparing ----

def plain(v):
    """Numbers as int or float, times as text, maps and rows as lists of pairs: what both engines agree to print."""
    if isinstance(v, dict):
        return [[k, plain(x)] for k, x in v.items()]
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, decimal.Decimal):
        return int(v) if v == v.to_integral_value() else float(v)
    if isinstance(v, float) and math.isfinite(v) and v == int(v):
        return int(v)
    if isinstance(v, datetime.datetime):
        return v.replace(tzinfo=None).isoformat()
    if isinstance(v, datetime.date):
        return datetime.datetime(v.year, v.month, v.day).isoformat()
    return v


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def near(a, b):
    if is_number(a) and is_number(b):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1)
    return a == b


def rows_near(a, b):
    return all(near(x, y) for x, y in zip(a, b))


def unmatched(ours, duck):
    """Pairs up rows that are near; what is left of each side. Rows are looked for among those that are equal but for their numbers."""
    buckets, left = {}, []
    for r in duck:
        buckets.setdefault(tuple((i, str(v)) for i, v in enumerate(r) if not isinstance(v, float)), []).append(r)
    for r in ours:
        bucket = buckets.get(tuple((i, str(v)) for i, v in enumerate(r) if not isinstance(v, float)), [])
        found = next((k for k, b in enumerate(bucket) if rows_near(r, b)), None)
        if found is None:
            left.append(r)
        else:
            bucket.pop(found)
    rest = [r for b in buckets.values() for r in b]
    if left and len(left) == len(rest) <= 1000:  # a float that is whole on one side only
        left = [r for r in left if not any(rows_near(r, b) and (rest.remove(b) or True) for b in rest)]
    return left, rest


def difference(ours, duck, ordered):
    """None where the results are the same, else a sentence."""
    ours, duck = [[plain(v) for v in r] for r in ours], [[plain(v) for v in r] for r in duck]
    if ordered and len(ours) == len(duck):
        wrong = next((i for i, (a, b) in enumerate(zip(ours, duck)) if not rows_near(a, b)), None)
        return None if wrong is None else f"row {wrong}: {ours[wrong]}, DuckDB {duck[wrong]}"
    left, rest = unmatched(ours, duck)
    if not left and not rest:
        return None
    return f"{len(ours)} rows, DuckDB {len(duck)}; only ours: {left[:2]}, only DuckDB: {rest[:2]}"
