"""Runs sqllogictest files.   slt.py PATH ... [--strict] [--parallelism N] [--library FILE] [--engine clink|duckdb]

Each file runs in an engine of its own. Prints the pass rate and how often each reason not to pass was met, with the first place; with --strict every record that
fails, and exit status 1. Understands what SQLite, DuckDB and sqllogictest-rs write: statement ok|error|maybe|count, query with types, nosort|rowsort|valuesort,
labels, values a line or rows a line, <REGEX>: values, hashes and hash-threshold, skipif, onlyif (--as), halt, mode skip, loop and foreach, require, control
sortmode. What it does not know is counted as such."""
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


INTEGRAL = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT"]
TYPES = {"<signed>": INTEGRAL, "<integral>": INTEGRAL, "<numeric>": INTEGRAL + ["FLOAT", "DOUBLE"], "<alltypes>": INTEGRAL + ["FLOAT", "DOUBLE", "BOOLEAN", "VARCHAR"]}
NO_NEED = ("skip_reload", "vector_size", "64bit", "longdouble", "no_alternative_verify", "no_vector_verification", "noforcestorage", "block_size", "ram", "notwindows")
NO_MATTER = ("hash-threshold", "control", "subtest", "sleep", "connection", "restart", "reconnect", "set", "reset", "unload")


class Record:
    def __init__(self, line, kind):
        self.line, self.kind, self.sql, self.expected = line, kind, "", []
        self.types, self.sort, self.label, self.error = "", "nosort", None, ""


def block_end(lines, i):
    """The line of the endloop of the loop at i."""
    depth = 0
    for k in range(i, len(lines)):
        word = (lines[k][1].split() or [""])[0]
        depth += (word in ("loop", "foreach", "concurrentloop", "concurrentforeach")) - (word == "endloop")
        if depth == 0:
            return k
    return len(lines)


def loop_values(words):
    if words[0].endswith("foreach"):
        return [v for w in words[2:] for v in TYPES.get(w, [w])]
    return [str(n) for n in range(int(words[2]), int(words[3]))]


def unrolled(lines):
    """Numbered lines without loops: their blocks as often as they run, with the variable put in."""
    out, i = [], 0
    while i < len(lines):
        words = lines[i][1].split()
        if not words or words[0] not in ("loop", "foreach", "concurrentloop", "concurrentforeach") or len(words) < 3:
            out.append(lines[i])
            i += 1
            continue
        end = block_end(lines, i)
        for v in loop_values(words):
            out += unrolled([(n, text.replace("${" + words[1] + "}", v)) for n, text in lines[i + 1:end]]) + [(0, "")]
        i = end + 1
    return out


class Reader:
    """The records of a file that are for the engine called `names`; unknown lines come as records of kind "unknown", what the file needs and is not there as "needs"."""

    def __init__(self, path, names):
        with open(path, encoding="utf-8", errors="replace") as f:
            self.lines = unrolled(list(enumerate(f.read().splitlines(), 1)))
        self.names, self.at, self.sort = names, 0, "nosort"

    def block(self, until=()):
        """Lines up to an empty one."""
        out = []
        while self.at < len(self.lines) and self.lines[self.at][1].strip() and self.lines[self.at][1].strip() not in until:
            out.append(self.lines[self.at][1])
            self.at += 1
        return out

    def record(self, r, words):
        r.sql = "\n".join(self.block(("----",)))
        r.has_result = self.at < len(self.lines) and self.lines[self.at][1].strip() == "----"
        if r.has_result:
            self.at += 1
            r.expected = self.block()
        if words[0] == "statement":
            r.error = " ".join(words[2:]) or ".*" if words[1:2] == ["error"] else ""
            r.kind = "maybe" if words[1:2] == ["maybe"] else r.kind
        elif words[1:2] == ["error"]:
            r.kind, r.error = "statement", " ".join(words[2:]) or ".*"
        else:
            r.types = words[1] if len(words) > 1 else ""
            r.sort = next((w for w in words[2:] if w in ("nosort", "rowsort", "valuesort")), self.sort)
            r.label = next((w for w in words[2:] if w not in ("nosort", "rowsort", "valuesort") and not w.startswith("#")), None)
        return r

    def __iter__(self):
        skip = off = False
        while self.at < len(self.lines):
            number, text = self.lines[self.at]
            words = text.split()
            self.at += 1
            if not words or words[0].startswith("#"):
                continue
            if words[0] in ("skipif", "onlyif"):
                skip = skip or (words[0] == "skipif") == (words[1].rstrip(":") in self.names)
            elif words[0] == "halt":
                if not skip:
                    return
                skip = False
            elif words[0] == "mode":
                off = words[1:2] == ["skip"] or (off and words[1:2] != ["unskip"])
            elif words[:2] == ["control", "sortmode"]:
                self.sort = words[2]
            elif words[0] in ("require", "require-env", "test-env"):
                if words[0] != "test-env" and words[1] not in NO_NEED:
                    r = Record(number, "needs")
                    r.sql = words[1]
                    yield r
                    return
            elif words[0] in ("statement", "query"):
                r = self.record(Record(number, words[0]), words)
                if not skip and not off:
                    yield r
                skip = False
            elif words[0] not in NO_MATTER:
                r = Record(number, "unknown")
                r.sql = words[0]
                self.block()
                if not skip and not off:
                    yield r
                skip = False


class Text(str):
    """A value as sqllogictest files write it, and what it was."""

    def __new__(cls, text, raw=None):
        t = super().__new__(cls, text)
        t.raw = raw
        return t


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


def same_value(got, want):
    """Numbers by value: to the digits that are written, or a millionth."""
    if got == want:
        return True
    if m := re.match(r"<(!?)REGEX>:(.*)", want, re.S):
        return bool(re.fullmatch(m[2], got, re.S)) != bool(m[1])
    raw = getattr(got, "raw", None)
    try:
        a, b = float(got if raw is None else raw), float(want)
        digits = re.fullmatch(r"-?\d*\.(\d+)", want)
        return abs(a - b) <= max(1e-6 * max(1.0, abs(b)), 0.5000001 * 10.0 ** -len(digits[1]) if digits else 0.0)
    except ValueError:
        return False


def compare(r, rows, labels):
    """None or what differs; results of one label are the same in a file."""
    columns = len(rows[0]) if rows else max(1, len(r.types))
    kinds = r.types.ljust(columns, "T")
    got = [[Text(text_of(v, k), v if isinstance(v, (int, float, decimal.Decimal)) and not isinstance(v, bool) else None) for v, k in zip(row, kinds)] for row in rows]
    if r.sort == "rowsort":
        got.sort()
    flat = [v for row in got for v in row]
    if r.sort == "valuesort":
        flat.sort()
    digest = hashlib.md5("".join(v + "\n" for v in flat).encode()).hexdigest()
    if r.label and labels.setdefault(r.label, digest) != digest:
        return f"the result differs from an earlier one of label {r.label}"
    if not r.has_result:
        return None
    if len(r.expected) == 1 and (m := re.match(r"(\d+) values hashing to ([0-9a-f]{32})$", r.expected[0])):
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
        self.passed, self.total, self.reasons, self.first, self.failures = 0, 0, collections.Counter(), {}, []

    def fail(self, path, r, why, text):
        self.reasons[why] += 1
        self.first.setdefault(why, f"{path}:{r.line}")
        self.failures.append(f"{path}:{r.line}: {text}\n  {r.sql}")


def takes_keys(sql):
    """Our keys are declared, not checked: PRIMARY KEY of other people's files says so."""
    if not re.match(r"\s*create\s+(temporary\s+|temp\s+)?table\b", sql, re.I):
        return sql
    return re.sub(r"\bprimary\s+key\b(\s*\([^()]*\))?(?!\s*\(|\s*not\s+enforced)", r"PRIMARY KEY\1 NOT ENFORCED", sql, flags=re.I)


def run_record(path, r, report, ask, labels):
    if r.kind in ("unknown", "needs"):
        report.fail(path, r, *[f"record {r.sql} is not known" if r.kind == "unknown" else f"the rest of the file needs {r.sql}"] * 2)
        return
    try:
        rows = ask(r.sql)
    except RuntimeError as e:
        if r.kind == "maybe" or (r.error and (r.error == ".*" or re.search(r.error, str(e), re.S))):
            report.passed += 1
        else:
            report.fail(path, r, "refused: " + reason_of(str(e)), str(e))
        return
    if r.error:
        report.fail(path, r, "an error was expected and none came", f"an error was expected: {r.error}")
        return
    wrong = compare(r, rows, labels) if r.kind == "query" else None
    if wrong:
        report.fail(path, r, "wrong result", wrong)
    else:
        report.passed += 1


def run_file(path, names, report, ask):
    labels = {}
    for r in Reader(path, names):
        report.total += 1
        run_record(path, r, report, ask, labels)


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
    a.add_argument("--as", dest="names", default="clink,duckdb", help="names that skipif and onlyif know the engine by")
    a.add_argument("--library", default=os.path.join(engines.TOP, "build", "libclink.so"))
    o = a.parse_args()
    report, files = Report(), list(files_of(o.paths))
    for path in files:
        ask, close = clink_asker(o.library, o.parallelism) if o.engine == "clink" else duckdb_asker()
        run_file(path, set(o.names.split(",")), report, ask)
        close()
    if o.strict:
        for f in report.failures:
            print(f)
    rate = 100.0 * report.passed / report.total if report.total else 0.0
    print(f"{len(files)} files, {report.total} records, {report.passed} passed ({rate:.1f}%)")
    for why, n in report.reasons.most_common(None if o.strict else 60):
        print(f"  {n}: {why}" + ("" if o.strict else f" (first at {report.first[why]})"))
    return 1 if not files or (o.strict and report.passed < report.total) else 0


if __name__ == "__main__":
    sys.exit(main())
