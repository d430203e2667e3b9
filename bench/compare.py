"""Order-insensitive comparison of materialised results.   compare.py N [A B [q...]]   (A, B = engine prefixes of out/<engine>_<q>_<N>.tsv)
Each line is KIND<tab>column<tab>...: the net result is the multiset of rows after +I and +U (add) and -U and -D (remove).
If a peer emits bare upserts (no -U for a changed key) the multiset is wrong; then the last row of each key is tried, and said so; never for
ours. Exit 1 where a result is missing or differs."""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs

KEY = {"q4": [0], "q15": [0], "q16": [0, 1], "q17": [0, 1], "q9": [0], "q18": [0, 1]}
TIES = {"q18": [0, 1, 2], "q19": [0, 1], "q9": [0, 5, 6]}  # columns that do not depend on which of two equal rows won
DAY_MS = 1436918400000  # 2015-07-15, where the generator's event time begins
TIMESTAMP = re.compile(r"2015-07-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?(?:\.(\d+))?Z?)?")


def since_day(day, hour, minute, second, millis):
    return str(DAY_MS + (((day - 15) * 24 + hour) * 60 + minute) * 60000 + second * 1000 + millis)


def norm(v):
    """Engines spell times and numbers differently: times become epoch milliseconds, fractions ten digits."""
    if not v[:1].isdigit() and v[:1] != "-":
        return v
    m = TIMESTAMP.fullmatch(v)
    if m:
        day, hour, minute, second, fraction = m.groups()
        return since_day(int(day), int(hour or 0), int(minute or 0), int(second or 0), int((fraction or "0").ljust(3, "0")[:3]))
    if re.fullmatch(r"\d\d:\d\d", v):
        return since_day(15, int(v[:2]), int(v[3:]), 0, 0)
    if re.fullmatch(r"-?\d+\.\d+([eE][-+]?\d+)?", v):
        return "%.10g" % float(v)
    if re.fullmatch(r"-?\d{1,10}", v):
        return "%.10g" % int(v)
    return v


def path(engine, q, n):
    return f"{runs.WORK}/out/{engine}_{q}_{n}.tsv"


def load(engine, q, n):
    """-> (net rows, last row of each key, lines of each kind)"""
    net, last, kinds = collections.Counter(), {}, collections.Counter()
    for line in open(path(engine, q, n)):
        kind, *row = line.rstrip("\n").split("\t")
        row = tuple(map(norm, row))
        kinds[kind] += 1
        added = kind in ("+I", "+U")
        net[row] += 1 if added else -1
        if q in KEY:
            key = tuple(row[i] for i in KEY[q])
            if added:
                last[key] = row
            elif last.get(key) == row:
                del last[key]
    return net, collections.Counter(last.values()), kinds


def untied(rows, q):
    out = collections.Counter()
    for row, count in rows.items():
        out[tuple(row[i] for i in TIES[q])] += count
    return +out


def same_lines(a, b, q, n):
    """Most results are spelled alike: equal as lines, without looking inside."""
    def lines(engine):
        with open(path(engine, q, n)) as f:
            return collections.Counter(f)
    return os.path.getsize(path(a, q, n)) == os.path.getsize(path(b, q, n)) and lines(a) == lines(b)


def differ(a, b, q, x, y):
    y_rows = y[1] if q in KEY and len(y[0]) > 2 * len(x[0]) else y[0]
    only_a, only_b = collections.Counter(x[0]) - y_rows, +y_rows - collections.Counter(x[0])
    return (f"DIFFER: only {a} {sum(only_a.values())}, only {b} {sum(only_b.values())}; e.g. {next(iter(only_a), None)} / "
            f"{next(iter(only_b), None)}")[:330]


def verdict(a, b, q, n):
    """-> (the same?, sentence)"""
    missing = [e for e in (a, b) if not os.path.exists(path(e, q, n))]
    if missing:
        return False, "missing: " + ", ".join(missing)
    if same_lines(a, b, q, n):
        return True, "equal"
    x, y = load(a, q, n), load(b, q, n)
    net_x, net_y = ({k: v for k, v in e[0].items() if v} for e in (x, y))
    if min(list(net_y.values()) + [0]) < 0 and "ours" in (a, b):
        return False, "rows taken back that were never there"
    if net_x == net_y:
        return True, "equal"
    peer = "ours" not in (a, b)
    if q in KEY and peer and (net_x == y[1] or x[1] == net_y or x[1] == y[1]):
        bare = [e for e, net, last in ((a, net_x, x[1]), (b, net_y, y[1])) if net != last]
        return True, "equal; " + " and ".join(bare) + " emits bare upserts (no -U)"
    if q in TIES and untied(x[0], q) in (untied(y[0], q), untied(y[1], q) if q in KEY and peer else None):
        return True, "equal up to ties"
    return False, differ(a, b, q, x, y)


def main():
    n = sys.argv[1]
    a, b = sys.argv[2:4] if len(sys.argv) > 3 else ("duckdb", "ours")
    bad = 0
    print(f"| q | {a} and {b} |\n|---|---|")
    for q in sys.argv[4:] or runs.QUERIES:
        same, text = verdict(a, b, q, n)
        bad += not same
        print(f"| {q} | {text} |")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
