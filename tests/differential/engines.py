"""The two engines: libclink through ctypes and DuckDB, over the same rows; and whether two results are the same."""
import ctypes
import datetime
import decimal
import json
import math
import os
import random
import sys

import duckdb
import pyarrow as pa

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "examples"))
import embed  # noqa: E402

DDL = {
    "flights": """month BIGINT, day BIGINT, dep_time BIGINT, dep_delay BIGINT, arr_delay BIGINT, carrier VARCHAR, flight BIGINT, tailnum VARCHAR,
        origin VARCHAR, dest VARCHAR, air_time BIGINT, distance BIGINT, hour BIGINT, time_hour TIMESTAMP""",
    "planes": "tailnum VARCHAR, year BIGINT, manufacturer VARCHAR, engines BIGINT, seats BIGINT, engine VARCHAR",
    "airports": "faa VARCHAR, name VARCHAR, lat DOUBLE, lon DOUBLE, alt BIGINT, tz BIGINT, dst VARCHAR",
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
        if not changes or "op" not in table.column_names[:1]:
            return rows
        left = {}
        for op, *row in rows:
            key = freeze(row)
            left.setdefault(key, [0, tuple(row)])[0] += 1 if op in ("+I", "+U") else -1
        wrong = [row for n, row in left.values() if n < 0]
        if wrong:
            raise RuntimeError(f"a row was taken back that never came: {wrong[0]}")
        return [row for n, row in left.values() for _ in range(n)]


def freeze(row):
    return tuple(("nan",) if isinstance(v, float) and math.isnan(v) else tuple(v) if isinstance(v, list) else v for v in row)


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


def make_data(flights_dir, out, flights=2500, bids=1500, seed=1):
    """Typed CSV files of a sample of the real data, and bids."""
    d = duckdb.connect()
    for name, ddl in DDL.items():
        if name == "bids":
            continue
        columns = [c.split() for c in ddl.split(",")]
        casts = ", ".join(f"CAST({n} AS {' '.join(t)}) AS {n}" for n, *t in columns)
        sample = f"USING SAMPLE reservoir({flights} ROWS) REPEATABLE ({seed})" if name == "flights" else ""
        src = f"read_csv('{flights_dir}/{name}.csv', nullstr='NA', header=true)"
        d.execute(f"COPY (SELECT {casts} FROM {src} {sample}) TO '{out}/{name}.csv' (HEADER, DELIMITER ',', NULLSTR 'NA')")
    make_bids(f"{out}/bids.ndjson", bids, seed)


def open_both(library, data):
    ours, duck = Clink(library), duckdb.connect()
    for name, ddl in DDL.items():
        form = "json" if name == "bids" else "csv"
        path = f"{data}/{name}.{'ndjson' if form == 'json' else 'csv'}"
        extra = "" if form == "json" else ", header='true', null_string='NA'"
        ours.ask(f"CREATE TABLE {name} ({ddl}) WITH (connector='file', format='{form}', path='{path}'{extra})")
        duck.execute(f"CREATE TABLE {name} ({ddl})")
        if form == "json":
            columns = "{" + ", ".join(f"'{c.split()[0]}': '{' '.join(c.split()[1:])}'" for c in ddl.replace("(12, 2)", "(12;2)").split(",")).replace(";", ", ") + "}"
            duck.execute(f"INSERT INTO {name} SELECT * FROM read_json('{path}', format='newline_delimited', columns={columns})")
        else:
            duck.execute(f"INSERT INTO {name} SELECT * FROM read_csv('{path}', nullstr='NA', header=true)")
    return ours, duck


# ---- comparing ----

def plain(v):
    """Numbers as int or float, times as text: what both engines agree to print."""
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
