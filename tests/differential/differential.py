"""Random queries through clink and DuckDB.   differential.py [--n 300] [--seed 1] [--seconds 60] [--every 100] [--data DIR] [--library FILE]

Each query runs at -p 1, at -p 3, as a stream of changes that is netted, and over input that never ends until what is left of the changes is right. Prints the seed of each query that differs, and the smallest query found
that still does. Says how far it is (--every), from where another run goes on, and what came out at the end or when it is stopped. Exit status 1 when one
differs that is not in deviations.txt."""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import engines  # noqa: E402
import generate  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))
MODES = [("p1", 1, False), ("p3", 3, False), ("changes", 2, True), ("endless", 2, True)]


def deviations():
    """Lines `pattern<tab>reason`: a regular expression over the SQL, a line feed and the difference."""
    with open(os.path.join(HERE, "deviations.txt")) as f:
        return [line.rstrip("\n").split("\t", 1) for line in f if line.strip() and not line.startswith("#")]


def reason_of(message):
    """A refusal without names and places, to count by."""
    text = re.sub(r"^q:\d+:\d+: ", "", message.split("\n")[0])
    return re.sub(r'"[^"]*"', '"..."', text)[:110]


class Differential:
    def __init__(self, library, data):
        self.ours, self.duck = engines.open_ours(library, data), engines.open_duck(data)
        self.endless = engines.open_ours(library, data, ", follow='true'")
        self.known = deviations()
        self.refused_at = {}  # the first seed of each
        self.refused, self.skipped, self.same, self.deviating = collections.Counter(), 0, 0, 0

    def expected(self, q):
        try:
            return self.duck.execute(q.sql("duck")).fetchall()
        except Exception:  # what DuckDB does not take is not compared
            return None

    def check(self, q, want, mode):
        """(kind, text): "same", "refused", "error" or "differs"."""
        name, parallelism, changes = mode
        ordered = isinstance(q, generate.Select) and bool(q.order) and not changes
        sql = q.sql("ours")
        settings = "SET batch_rows = 100; " if changes else "SET batch_rows = 4096; "
        try:
            if name == "endless":
                got = self.endless.ask_until(settings + sql, parallelism, lambda rows: len(rows) == len(want) and not engines.difference(rows, want, False))
            else:
                got = self.ours.ask(settings + sql, parallelism, changes)
        except RuntimeError as e:
            text = str(e)
            return ("refused" if re.match(r"q:\d+:\d+:", text) else "error"), text
        text = engines.difference(got, want, ordered)
        return ("same", "") if text is None else ("differs", text)

    def deviation(self, q, text):
        return next((why for pattern, why in self.known if re.search(pattern, q.sql("ours") + "\n" + text, re.S)), None)

    def shrink(self, q, kind, text, mode, seconds=20):
        end, best = time.monotonic() + seconds, (q, text)
        changed = True
        while changed and time.monotonic() < end:
            changed = False
            for c in generate.smaller(best[0]):
                if c is None or time.monotonic() > end or len(c.sql("ours")) >= len(best[0].sql("ours")):
                    continue
                want = self.expected(c)
                if want is None:
                    continue
                k, t = self.check(c, want, mode)
                if k == kind:
                    best, changed = (c, t), True
                    break
        return best

    def one(self, seed):
        """None, or the report of a failure."""
        for k in range(4):  # an empty result says little
            q = generate.Generator(seed * 4 + k).root()
            want = self.expected(q)
            if want:
                break
        if want is None or len(want) > 20000:
            self.skipped += 1
            return None
        for mode in MODES:
            if mode[0] == "endless" and not want:  # right before anything has come
                continue
            if mode[2] and isinstance(q, generate.Select) and q.order and q.limit is None:
                continue
            kind, text = self.check(q, want, mode)
            if kind == "same":
                continue
            if kind == "refused":
                self.refused[mode[0] + ": " + reason_of(text)] += 1
                self.refused_at.setdefault(mode[0] + ": " + reason_of(text), seed)
                return None
            if self.deviation(q, text):
                self.deviating += 1
                return None
            small, text = self.shrink(q, kind, text, mode)
            return f"seed {seed} {mode[0]} {kind}: {text}\n  ours: {small.sql('ours')}\n  duck: {small.sql('duck')}"
        self.same += 1
        return None


    def counts(self):
        return f"{self.same} the same at -p 1, at -p 3, as changes and without end, {{}} failed, {self.deviating} known to deviate, {sum(self.refused.values())} refused, {self.skipped} not for DuckDB"


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--n", type=int, default=300)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--seconds", type=float, default=1e9)
    a.add_argument("--every", type=int, default=0, help="say how far it is after so many")
    a.add_argument("--data", default="")
    a.add_argument("--failures", type=int, default=5, help="stop after so many")
    a.add_argument("--library", default=os.path.join(engines.TOP, "build", "libclink.so"))
    o = a.parse_args()
    work = tempfile.TemporaryDirectory()
    flights = o.data or os.path.join(engines.TOP, "build", "data", "nycflights13")
    subprocess.run([os.path.join(engines.TOP, "tools", "data.sh"), flights], check=True)
    engines.make_data(flights, work.name)
    d, failures, end = Differential(o.library, work.name), [], time.monotonic() + o.seconds
    ran, began = 0, time.monotonic()
    try:
        for seed in range(o.seed, o.seed + o.n):
            if time.monotonic() > end or len(failures) >= o.failures:
                break
            report = d.one(seed)
            ran += 1
            if report:
                failures.append(report)
                print(report, flush=True)
            if o.every and ran % o.every == 0:
                print(f"after {ran} of {o.n} ({time.monotonic() - began:.0f}s): {d.counts().format(len(failures))}; SEED={seed + 1} N={o.n - ran} goes on from here", flush=True)
    except KeyboardInterrupt:
        print(f"stopped; SEED={o.seed + ran} N={o.n - ran} goes on from here")
    print(f"seeds {o.seed} to {o.seed + ran - 1}: {d.counts().format(len(failures))}")
    for why, n in d.refused.most_common():
        print(f"  refused {n}, seed {d.refused_at[why]} first: {why}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
