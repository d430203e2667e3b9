"""The table of a comparison, and docs/benchmarks.md with its bars.   report.py: writes the page anew from what full runs have left."""
import datetime
import glob
import json
import os
import platform
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bars
import runs

PEERS = ["cpp", "flink"]
NAMES = {"ours": "clink", "duckdb": "DuckDB, 1 thread", "cpp": "C++ peer", "flink": "Flink, warm"}
MATERIALISED = {"q0", "q1", "q21", "q22"}


class Result:
    """One run: the best line of each (engine, query), and whether each result equals DuckDB's."""

    def __init__(self, n, engines, queries, lines, same, waiting=()):
        self.n, self.engines, self.queries, self.lines, self.same, self.waiting = n, engines, queries, lines, same, waiting

    def line(self, engine, q):
        return self.lines.get((engine, q))

    def cpu(self, engine, q):
        """CPU seconds of a query that ran and whose result was right, else None."""
        line = self.line(engine, q)
        return line["cpu"] if line and line["ok"] and self.same[engine, q][0] else None

    def ratio(self, q, a, b):
        x, y = self.cpu(a, q), self.cpu(b, q)
        return x / y if x is not None and y else None

    def best_peer(self, q):
        times = [self.cpu(e, q) for e in PEERS if e in self.engines and self.cpu(e, q) is not None]
        return min(times) if times else None


def cell(result, engine, q):
    line = result.line(engine, q)
    if not line:
        return "-"
    if not line["ok"]:
        return "failed"
    return f"{line['cpu']:.3f}" if result.same[engine, q][0] else "differs"


def table(result):
    """Markdown: CPU seconds, the ratios, peak memory of ours, and every difference by name."""
    shown = [e for e in ("ours", "duckdb", *PEERS) if e in result.engines]
    head = ["query", *(NAMES[e] for e in shown), "clink / DuckDB", "best peer / clink", "clink RSS, MB"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for q in result.queries:
        ratio, peer, ours = result.ratio(q, "ours", "duckdb"), result.best_peer(q), result.cpu("ours", q)
        rss = (result.line("ours", q) or {}).get("rss_mb")
        lines.append("| " + " | ".join([
            q + ("*" if q in MATERIALISED else ""), *(cell(result, e, q) for e in shown), f"{ratio:.2f}" if ratio else "-",
            f"{peer / ours:.1f}" if peer and ours else "-", f"{rss:.0f}" if rss and ours else "-"]) + " |")
    lines.append("")
    for (engine, q), (ok, text) in result.same.items():
        if not ok:
            lines.append(f"{q}, {NAMES[engine]}: {text}")
    if result.waiting:
        lines.append(f"Not yet in clink: {', '.join(result.waiting)}.")
    return "\n".join(lines)


# ---- the page ----


def output_of(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    cpu = re.search(r"Model name:\s*(.*)", output_of("lscpu"))
    mem_kb = int(re.search(r"MemTotal:\s*(\d+)", open("/proc/meminfo").read())[1])
    return (f"{cpu[1] if cpu else platform.processor()}, {os.cpu_count()} cores, {mem_kb / 2**20:.0f} GiB, Linux {platform.release()}")


def versions():
    of = lambda python, package: output_of(python, "-c", f"import importlib.metadata as m; print(m.version('{package}'))")
    java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr.splitlines() if output_of("which", "java") else []
    cache = open(runs.TOP + "/build/CMakeCache.txt").read()
    compiler = re.search(r"CMAKE_C_COMPILER:\w+=(.*)", cache)[1]
    flags = re.search(r"CMAKE_BUILD_TYPE:\w+=(.*)", cache)[1]
    return {"clink": f"{output_of(runs.TOP + '/build/clink', 'version').removeprefix('clink ')} ({output_of('git', '-C', runs.TOP, 'rev-parse', '--short', 'HEAD')}), {flags} "
                     f"build by {(output_of(compiler, '--version').splitlines() or ['?'])[0]}",
            "DuckDB": of(runs.PYTHON, "duckdb"), "C++ peer": "pyclink " + of(runs.PYTHON, "pyclink"),
            "Flink": of(runs.WORK + "/vf/bin/python", "apache-flink") + (f", {java[0]}" if java else "")}


def keep(result):
    """Leaves a full run for the page."""
    text = dict(n=result.n, date=datetime.date.today().isoformat(), machine=machine(), versions=versions(), table=table(result),
                load=round(os.getloadavg()[2]), absent=[NAMES[e] for e in PEERS if e not in result.engines], bid_bytes=os.path.getsize(f"{runs.WORK}/data/{result.n}/bid.ndjson"),
                bars=[dict(q=q, **{e: result.cpu(e, q) for e in result.engines}) for q in result.queries])
    with open(f"{runs.WORK}/page-{result.n}.json", "w") as f:
        json.dump(text, f)


HEAD = """# Benchmarks

Written by `make bench` (`bench/README.md` says how it measures); ratios belong to one run on one machine. CPU seconds are user + system, the best
of several; for clink and the C++ peer of the whole process from its start to its end, for DuckDB of the query alone, for Flink of the job
inside a warm JVM. Every result is compared with DuckDB's first (clink's over the same events, the peers' over 100,000), and a query
whose results differ gets no figure.

- **Input**: NDJSON of `bench/nexmark_gen.c`, the same files for everyone, in the page cache.
- **clink**: `clink run -p 1`, result into a `blackhole` table, everything else as it comes.
- **DuckDB**: `threads=1`, `preserve_insertion_order=false`, `CREATE TEMP TABLE ... AS` the bounded equivalent of the query. It so materialises its
  result, which costs it about 0.1 s at a million events where nearly every row comes out (q0, q1, q21, q22, marked *).
- **C++ peer**: one process a query, parallelism 1, `blackhole`. **Flink**: one JVM, parallelism 1, object reuse, `blackhole`, once or twice a query.
"""


def heading(section):
    """What a section is known by: its first line up to a bracket, which holds figures."""
    return section.split("\n", 1)[0].split("(")[0].strip()


def merged(page, sections):
    """The page with these sections in the places of those of the same heading, new ones in order behind the last of them; what others wrote stays."""
    parts = re.split(r"^(?=## )", page, flags=re.M)
    after = 0
    for new in sections:
        new = new.strip() + "\n\n"
        found = [i for i, part in enumerate(parts) if i and heading(part) == heading(new)]
        if found:
            after = found[0]
            parts[after] = new
        else:
            after += 1
            parts.insert(after, new)
    return "".join(parts).rstrip() + "\n"


def write_page():
    pages = sorted((json.load(open(p)) for p in glob.glob(f"{runs.WORK}/page-*.json")), key=lambda p: p["n"])
    out = []
    for p in pages:
        name = f"benchmarks-{p['n']}.svg"
        with open(f"{runs.TOP}/docs/{name}", "w") as f:
            f.write(bars.draw(f"CPU seconds, {p['n']:,} events", p["bars"]))
        out.append(f"## NEXMark, {p['n']:,} events ({p['bid_bytes'] / 1e6:.0f} MB of bids)\n\n{p['table']}\n\n![bars]({name})\n\n"
                   f"{p['date']}, {p['machine']}, load average {p['load']} at the end. " + ("Not run this time: " + ", ".join(p["absent"]) + ". " if p["absent"] else "") + "; ".join(f"{k} {v}" for k, v in p["versions"].items()) + ".\n")
    for left in (f"{runs.WORK}/keys.md", f"{runs.WORK}/latency.md"):
        if os.path.exists(left):
            out.append(open(left).read())
    page = runs.TOP + "/docs/benchmarks.md"
    before = open(page).read() if os.path.exists(page) else HEAD
    with open(page, "w") as f:
        f.write(merged(before, out))
    print("wrote docs/benchmarks.md")


if __name__ == "__main__":
    write_page()
