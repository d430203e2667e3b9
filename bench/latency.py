"""make bench-latency: how long a row takes from the file it is written to, to the pipe its result comes out of, at half of what the query can take.
A writer appends blocks of rows to a followed file every 2 ms; one row of each is marked and carries the time it was written. A query's results
carry that time to a pipe; the difference to the time of reading is the latency. Writes docs/latency.svg and the section of docs/benchmarks.md.
   latency.py [-s seconds] [-m microseconds between blocks]"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs

CLINK = os.environ.get("CLINK", runs.TOP + "/build/clink")
TABLE = ("CREATE TABLE src (mark BOOLEAN, k BIGINT, v BIGINT, ms BIGINT, sent BIGINT) WITH (connector='file', format='json', path='{path}'"
         ", event_time_column='ms'{more});\n")
QUERIES = {  # `sent` of a result: when the newest marked row in it was written
    "filter and projection": "SELECT k * 2 AS k, sent FROM src WHERE mark",
    "GROUP BY 10 keys": "SELECT k, COUNT(*) AS n, MAX(sent) AS sent FROM src GROUP BY k",
    "TUMBLE of 100 ms": "SELECT COUNT(*) AS n, MAX(sent) AS sent FROM src GROUP BY TUMBLE(ms, INTERVAL '0.1' SECOND)",
}
FILLER = '{"mark":false,"k":%d,"v":%d,"ms":%d,"sent":0}\n'
MARKED = '{"mark":true,"k":%d,"v":1,"ms":%d,"sent":%d}\n'


def now_us():
    return time.time_ns() // 1000


def block(rows, ms):
    return "".join(FILLER % (i % 10, i, ms) for i in range(rows))


def capacity(query):
    """Rows a second of the query over a file that is there: one process, one core."""
    with tempfile.TemporaryDirectory() as d:
        text = block(1000, 1)
        with open(d + "/src.ndjson", "w") as f:
            for _ in range(1000):
                f.write(text)
        begun = time.monotonic()
        subprocess.run([CLINK, "run", "-p", "1", "--changes", "-e", TABLE.format(path=d + "/src.ndjson", more="") + query], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return 1_000_000 / (time.monotonic() - begun)


def feed(path, rows, every_us, until):
    """Blocks of rows, each with a marked one at its end, until the time is up. Behind its schedule it goes on at once."""
    due, number = now_us(), 0
    with open(path, "a") as f:
        while now_us() < until:
            due += every_us
            wait = due - now_us()
            if wait > 0:
                time.sleep(wait / 1e6)
            t, number = now_us(), number + 1
            f.write(block(rows - 1, t // 1000) + MARKED % (number % 10, t // 1000, t))
            f.flush()


def measure(query, rate, seconds, every_us):
    """Latencies in ms, without the first second."""
    rows = max(2, int(rate * every_us / 1e6))
    with tempfile.TemporaryDirectory() as d:
        path = d + "/src.ndjson"
        open(path, "w").close()
        p = subprocess.Popen([CLINK, "run", "-p", "1", "--changes", "--format", "ndjson", "-e", TABLE.format(path=path, more=", follow='true'") + query],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        begun, out, seen = now_us(), [], set()

        def read():
            for line in p.stdout:
                sent = int(re.search(rb'"sent":(\d+)', line)[1])
                if sent not in seen and sent > begun + 1_000_000:  # a group says its newest marked row with every change
                    seen.add(sent)
                    out.append((now_us() - sent) / 1000)

        reader = threading.Thread(target=read)
        reader.start()
        feed(path, rows, every_us, begun + int((seconds + 1) * 1e6))
        time.sleep(0.3)
        p.kill()
        reader.join()
        p.wait()
        return rows * 1e6 / every_us, sorted(out)


def at(values, q):
    return values[min(len(values) - 1, int(len(values) * q))]


def svg(series):
    """Quantiles from 0 to 99.9 on a logarithmic scale of milliseconds."""
    import math
    w, h, left, bottom = 640, 320, 50, 40
    x = lambda q: left + (w - left - 10) * q / 100
    y = lambda ms: h - bottom - (h - bottom - 10) * (math.log10(max(ms, 0.1)) + 1) / 4
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" font-family="sans-serif" font-size="11">']
    for ms in (0.1, 1, 10, 100, 1000):
        lines.append(f'<line x1="{left}" x2="{w - 10}" y1="{y(ms):.1f}" y2="{y(ms):.1f}" stroke="#ddd"/><text x="4" y="{y(ms) + 4:.1f}">{ms:g} ms</text>')
    for q in (0, 50, 90, 99):
        lines.append(f'<text x="{x(q) - 8:.1f}" y="{h - bottom + 16}">{q} %</text>')
    for i, (name, values) in enumerate(series.items()):
        color = ("#1b6ca8", "#d1495b", "#3a7d44")[i % 3]
        points = " ".join(f"{x(q / 10):.1f},{y(at(values, q / 1000)):.1f}" for q in range(0, 1000, 5))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>'
                     f'<text x="{left + 10 + 190 * i}" y="{h - 8}" fill="{color}">{name}</text>')
    return "\n".join(lines + ["</svg>\n"])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-s", type=float, default=10)
    ap.add_argument("-m", type=int, default=2000)
    ap.add_argument("--no-page", action="store_true")
    a = ap.parse_args()
    lines = ["| query | rows/s | p50, ms | p90, ms | p99, ms | max, ms | results |", "|---|---:|---:|---:|---:|---:|---:|"]
    series = {}
    for name, query in QUERIES.items():
        rate, got = measure(query, min(capacity(query) / 2, 200_000), a.s, a.m)
        series[name] = got
        lines.append(f"| {name} | {rate:,.0f} | {at(got, .5):.1f} | {at(got, .9):.1f} | {at(got, .99):.1f} | {got[-1]:.1f} | {len(got):,} |")
    text = "\n".join(lines)
    print(text)
    if a.no_page:
        return
    with open(runs.TOP + "/docs/latency.svg", "w") as f:
        f.write(svg(series))
    page = runs.TOP + "/docs/benchmarks.md"
    old = open(page).read().split("\n## Latency")[0].rstrip()
    load = os.getloadavg()[0]
    section = f"""
## Latency from source to sink

`make bench-latency`: from the write of a row to a followed file until its result is read from a pipe, `-p 1`, a block of rows every {a.m / 1000:g} ms at half of what the
query takes from a file, 200,000 rows a second at most (the writer, the engine and the reader share the machine; load average {load:.0f} at the end).

{text}

![quantiles](latency.svg)
"""
    os.makedirs(runs.WORK, exist_ok=True)
    with open(f"{runs.WORK}/latency.md", "w") as f:  # report.py puts it into its place on the page
        f.write(section)
    with open(page, "w") as f:
        f.write(old + "\n" + section)


main()
