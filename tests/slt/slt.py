"""Runs sqllogictest files.   slt.py PATH ... [--strict] [--parallelism N] [--library FILE] [--engine clink|duckdb]

Each file runs in an engine of its own. Prints the pass rate and how often each reason not to pass was met; with --strict every record that fails, and exit
status 1. Understands statement ok|error, query with types, nosort|rowsort|valuesort, labels, values a line or rows a line, hashes, skipif, onlyif, halt,
hash-threshold, control sortmode, include of nothing else: what it does not know is counted as such."""
import argparse
import collections
import datetime
import decimal
import hashlib
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "differential"))
import engines  # noqa: E402


class Record:
    def __init__(self, line, kind):
        self.line, self.kind, self.sql, self.expected = line, kind, "", []
        self.types, self.sort, self.label, self.error = "", "nosort", None, ""


def parse(path):
    """The records of a file that are for clink; unknown lines come as records of kind "unknown"."""
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = f.read().splitlines()
    i, skip, sort = 0, False, "nosort"
    while i < len(lines):
        words = lines[i].split()
        if not words or words[0].startswith("#"):
            i += 1
            continue
        r = Record(i + 1, words[0])
        i += 1
        if words[0] in ("skipif", "onlyif"):
            skip = skip or (words[0] == "skipif") == (words[1] in ("clink", "duckdb"))
            continue
        if words[0] == "halt":
            if not skip:
                return
            skip = False
            continue
        if words[0] == "control" and words[1:2] == ["sortmode"]:
            sort = words[2]
            continue
        if words[0] in ("hash-threshold", "control", "subtest", "sleep", "require", "mode"):
            continue
        if words[0] not in ("statement", "query"):
            r.kind = "unknown"
            r.sql = words[0]
            yield r
            while i < len(lines) and lines[i].strip():
                i += 1
            continue
        body = []
        while i < len(lines) and lines[i].strip() and lines[i].strip() != "----":
            body.append(lines[i])
            i += 1
        r.sql = "\n".join(body)
        if i < len(lines) and lines[i].strip() == "----":
            i += 1
            while i < len(lines) and lines[i].strip():
                r.expected.append(lines[i])
                i += 1
        if words[0] == "statement":
            r.error = " ".join(words[2:]) or ".*" if words[1:2] == ["error"] else ""
        elif words[1:2] == ["error"]:
            r.kind, r.error = "statement", " ".join(words[2:]) or ".*"
        else:
            r.types = words[1] if len(words) > 1 else ""
            r.sort = next((w for w in words[2:] if w in ("nosort", "rowsort", "valuesort")), sort)
        if not skip:
            yield r
        skip = False


def text_of(v, kind):
    """A value as sqllogictest files write it."""
    if v is None:
        return "NULL"
    if isinstance(v, bool):
        return ("1" if v else "0") if kind == "I" else str(v).lower()
    if kind == "I" and isinstance(v, (int, float, decimal.Decimal)):
        return str(int(v))
    if kind == "R" and isinstance(v, (int, float, decimal.Decimal)):
        return f"{float(v):.3f}"
    if isinstance(v, float) and v == int(v) and abs(v) < 1e15:
        return f"{v:.1f}"
    if isinstance(v, datetime.datetime):
        return v.replace(tzinfo=None).isoformat(" ")
    if isinstance(v, dict):
        return "{" + ", ".join(f"{k}: {text_of(x, 'T')}" for k, x in v.items()) + "}"
    if isinstance(v, list):
        return "[" + ", ".join(text_of(x, "T") for x in v) + "]"
    if isinstance(v, bytes):
        return v.hex()
    return str(v) if str(v) != "" else "(empty)"


def same_value(a, b):
    if a == b:
        return True
    try:
        return abs(float(a) - float(b)) <= 1e-6 * max(1.0, abs(float(b)))
    except ValueError:
        return False


def compare(r, rows):
    """None or what differs."""
    columns = len(rows[0]) if rows else max(1, len(r.types))
    kinds = r.types.ljust(columns, "T")
    got = [[text_of(v, k) for v, k in zip(row, kinds)] for row in rows]
    if r.sort == "rowsort":
        got.sort()
    flat = [v for row in got for v in row]
    if r.sort == "valuesort":
        flat.sort()
    if len(r.expected) == 1 and (m := re.match(r"(\d+) values hashing to ([0-9a-f]{32})$", r.expected[0])):
        digest = hashlib.md5("".join(v + "\n" for v in flat).encode()).hexdigest()
        return None if (len(flat), digest) == (int(m[1]), m[2]) else f"{len(flat)} values hash to {digest}, not {m[2]}"
    want = [line.strip() for line in r.expected]
    if columns == 1 or len(want) == len(flat):
        if len(want) == len(flat) and all(map(same_value, flat, sorted(want) if r.sort == "rowsort" and columns == 1 else want)):
            return None
    joined = [re.split(r"\t+|\s{2,}", w) if "\t" in w or "  " in w else w.split(" ") for w in want]
    if len(joined) == len(got):
        if r.sort == "rowsort":
            joined.sort()
        if all(len(a) == len(b) and all(map(same_value, a, b)) for a, b in zip(got, joined)):
            return None
        text = [" ".join(g) for g in got]  # texts with spaces
        plain = [" ".join(w.split()) for w in want]
        if (sorted(text) == sorted(plain)) if r.sort == "rowsort" else text == plain:
            return None
    return f"got {got[:3]}, not {want[:3]} ({len(got)} rows)"


def reason_of(message):
    text = re.sub(r"^sql:\d+:\d+: |^q:\d+:\d+: ", "", message.split("\n")[0])
    return re.sub(r"'[^']*'", "'...'", re.sub(r'"[^"]*"', '"..."', text))[:110]


class Report:
    def __init__(self):
        self.passed, self.total, self.reasons, self.failures = 0, 0, collections.Counter(), []

    def fail(self, path, r, why, text):
        self.reasons[why] += 1
        self.failures.append(f"{path}:{r.line}: {text}\n  {r.sql}")


def takes_keys(sql):
    """Our keys are declared, not checked: PRIMARY KEY of other people's files says so."""
    if not re.match(r"\s*create\s+(temporary\s+|temp\s+)?table\b", sql, re.I):
        return sql
    return re.sub(r"\bprimary\s+key\b(\s*\([^()]*\))?(?!\s*\(|\s*not\s+enforced)", r"PRIMARY KEY\1 NOT ENFORCED", sql, flags=re.I)


def run_file(path, report, ask):
    for r in parse(path):
        report.total += 1
        if r.kind == "unknown":
            report.fail(path, r, f"record {r.sql} is not known", f"record {r.sql} is not known")
            continue
        try:
            rows = ask(r.sql)
        except RuntimeError as e:
            if r.error and (r.error == ".*" or re.search(r.error, str(e), re.S)):
                report.passed += 1
            else:
                report.fail(path, r, reason_of(str(e)), str(e))
            continue
        if r.error:
            report.fail(path, r, "an error was expected and none came", f"an error was expected: {r.error}")
            continue
        wrong = compare(r, rows) if r.kind == "query" else None
        if wrong:
            report.fail(path, r, "wrong result", wrong)
        else:
            report.passed += 1


def duckdb_asker():
    import duckdb

    d = duckdb.connect()

    def ask(sql):
        try:
            return d.execute(sql).fetchall()
        except duckdb.Error as e:
            raise RuntimeError(str(e)) from None

    return ask, d.close


def clink_asker(library, parallelism):
    c = engines.Clink(library)
    return (lambda sql: c.ask(takes_keys(sql), parallelism)), c.close


def files_of(paths):
    for p in paths:
        if os.path.isdir(p):
            for top, _, names in sorted(os.walk(p)):
                yield from (os.path.join(top, n) for n in sorted(names) if n.endswith((".slt", ".test")))
        else:
            yield p


def main():
    a = argparse.ArgumentParser()
    a.add_argument("paths", nargs="+")
    a.add_argument("--strict", action="store_true")
    a.add_argument("--parallelism", type=int, default=1)
    a.add_argument("--engine", default="clink", choices=["clink", "duckdb"])
    a.add_argument("--library", default=os.path.join(engines.TOP, "build", "libclink.so"))
    o = a.parse_args()
    report, files = Report(), list(files_of(o.paths))
    for path in files:
        ask, close = clink_asker(o.library, o.parallelism) if o.engine == "clink" else duckdb_asker()
        run_file(path, report, ask)
        close()
    if o.strict:
        for f in report.failures:
            print(f)
    rate = 100.0 * report.passed / report.total if report.total else 0.0
    print(f"{len(files)} files, {report.total} records, {report.passed} passed ({rate:.1f}%)")
    for why, n in report.reasons.most_common(None if o.strict else 60):
        print(f"  {n}: {why}")
    return 1 if not files or (o.strict and report.passed < report.total) else 0


if __name__ == "__main__":
    sys.exit(main())
