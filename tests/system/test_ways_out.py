"""Each rewrite that a message suggests (the "-- way out:" parts of tests/sql/error/*.sql) runs on data: it ends, or goes on, and says rows."""
import datetime
import glob
import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import CLINK, TOP

FILES = sorted(glob.glob(os.path.join(TOP, "tests", "sql", "error", "*.sql")))
CREATE = re.compile(r"\s*CREATE\s+(?:TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+|\"[^\"]+\"|`[^`]+`)", re.I)
WRITTEN = re.compile(r"\bINSERT\s+(?:INTO|OVERWRITE)\s+(\w+)|(?:late_table|dead_letter_table)'?\s*=\s*'(\w+)'", re.I)
ROWS = 40
NO_ROWS = {"error_in_left_type-0": "an array as text is no s", "error_over_changes-1": "a result on close of what never ends",
           "error_as_of_changes-0": "what stands there when a row comes may be nothing yet", "error_as_of_no_time-0": "the same", "error_as_of_now_key-0": "the same"}


def ways_out(path):
    with open(path) as f:
        first, *parts = re.split(r"^-- way out:.*\n", f.read(), flags=re.M)
    options = re.match(r"-- options:(.*)", first)
    return [(part, options[1].split() if options else []) for part in parts]


def statements(sql):
    """Without comments, cut at semicolons that are not in quotes."""
    tokens = re.findall(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|;|[^;'\"`/-]+|.", sql, re.S)
    text = "".join("\0" if t == ";" else "" if t.startswith("--") else t for t in tokens)
    return [s.strip() for s in text.split("\0") if s.strip()]


def value(name, kind, i):
    """The i-th value of a column of a type as DESCRIBE names it."""
    if name in ("id", "age", "note") and kind.startswith(("VARCHAR", "BIGINT", "INT")):  # more of them than of others, so that some have no partner; and text that is a number
        i, kind = i % 8, "BIGINT" if name == "note" else kind
        return str(i) if name == "note" else f"k{i}" if kind.startswith("VARCHAR") else i
    kind = kind.strip().upper()
    if m := re.match(r"ARRAY<(.*)>$", kind):
        return [value("", m[1], i), value("", m[1], i + 1)]
    if m := re.match(r"MAP<([^,]+),(.*)>$", kind):
        return {str(value("", m[1], i)): value("", m[2], i)}
    if m := re.match(r"ROW<(.*)>$", kind):
        fields = re.findall(r"`?\"?(\w+)`?\"?\s+((?:[^,<(]|<[^>]*>|\([^)]*\))+)", m[1])
        return {f.lower(): value("", t, i) for f, t in fields}
    if kind.startswith("TIMESTAMP"):
        return (datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=i * 37)).isoformat()
    if kind.startswith("DATE"):
        return str(datetime.date(2024, 1, 1) + datetime.timedelta(days=i % 9))
    if kind.startswith("TIME"):
        return f"12:{i % 60:02}:00"
    if kind.startswith("BOOL"):
        return i % 2 == 0
    if kind.startswith(("VARCHAR", "STRING", "TEXT", "CHAR", "BYTES")):
        return f"k{i % 4}"
    if kind.startswith(("DOUBLE", "REAL", "FLOAT", "DECIMAL")):
        return (i % 7) + 0.5
    assert kind.startswith(("BIGINT", "INT", "SMALLINT", "TINYINT")), kind
    return i % 5 + 1


def write_rows(path, columns, csv):
    rows = [{name: value(name, kind, i) for name, kind in columns} for i in range(ROWS)]
    for i in range(0, ROWS, 10):  # a NULL where one may be
        for name, kind, nullable in [(n, k, "NOT NULL" not in k) for n, k in columns]:
            if nullable and not kind.startswith("TIMESTAMP"):
                rows[i][name] = None
    with open(path, "w") as f:
        for row in rows:
            if csv:
                f.write(",".join("" if v is None else str(v) for v in row.values()) + "\n")
            else:
                f.write(json.dumps(row) + "\n")


def prepare(where, sql):
    """Writes a file for each table that is read; whether something goes on for ever."""
    all_of_it = statements(sql)
    written = {n.lower() for m in WRITTEN.findall(sql) for n in m if n}
    endless, files = False, {}
    for k, s in enumerate(all_of_it):
        m = CREATE.match(s)
        if not m or re.search(r"\)?\s+AS\s+SELECT\b", s, re.I) or "connector" not in s.lower() or m[1].strip('"`').lower() in written:
            continue
        endless = endless or re.search(r"follow'?\s*=\s*'?true", s, re.I) or "'datagen'" in s
        path = re.search(r"\bpath'?\s*=\s*'([^']+)'", s)
        if not path:
            continue
        p = subprocess.run([CLINK, "run", "-e", ";\n".join(all_of_it[:k + 1]) + f";\nDESCRIBE {m[1]}"], cwd=where, capture_output=True, text=True)
        assert p.returncode == 0, p.stderr
        columns = [line.split(None, 1) for line in p.stdout.splitlines() if line and not re.match(r"(PRIMARY KEY|WATERMARK)\b", line)]
        columns = [(name, kind) for name, kind in columns if " AS " not in kind]
        known = files.setdefault(path[1], {})  # several tables may read one file
        known.update({n: t for n, t in columns if n not in known or "NOT NULL" in t})
        write_rows(os.path.join(where, path[1]), list(known.items()), "csv" in (path[1].rsplit(".", 1)[-1], *re.findall(r"format'?\s*=\s*'(\w+)'", s)))
    return bool(endless)


def run_bounded(where, args, prints):
    p = subprocess.run([CLINK, "run", *args, "q.sql"], cwd=where, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    assert p.stdout or not prints, "no rows"


def run_endless(where, args, prints):
    """Until something is printed or written; then it is stopped."""
    p = subprocess.Popen([CLINK, "run", *args, "q.sql"], cwd=where, stdout=open(os.path.join(where, ".out"), "w"), stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 30
    while p.poll() is None and time.monotonic() < end and not (os.path.getsize(os.path.join(where, ".out")) if prints else time.monotonic() > end - 29):
        time.sleep(0.01)
    said = os.path.getsize(os.path.join(where, ".out"))
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=60)
    assert p.returncode in (0, 130), err  # 0: it had all it wanted, as LIMIT does
    assert said or not prints, "no rows: " + err


CASES = [(os.path.basename(f)[:-4], i, part, options) for f in FILES for i, (part, options) in enumerate(ways_out(f))]


def test_there_are_many():
    assert len(FILES) > 300 and len(CASES) > 150


@pytest.mark.parametrize("name,i,sql,options", CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_way_out_runs(tmp_path, name, i, sql, options):
    (tmp_path / "q.sql").write_text(sql)
    endless = prepare(tmp_path, sql)
    args = ["-p", "2"] + (["--changes"] if "changes" in options else []) + (["--checkpoint-dir", "ck", "--checkpoint-interval-ms", "50"] if "checkpoints" in options else [])
    prints = f"{name}-{i}" not in NO_ROWS and any(re.match(r"(SELECT|WITH|VALUES|\()", s, re.I) for s in statements(sql))
    (run_endless if endless else run_bounded)(tmp_path, args, prints)
