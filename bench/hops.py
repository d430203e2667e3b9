"""What a row costs in a HOP of 1 to 1,000 slides, in instructions (callgrind): a row is counted once, in its slice, and a window that is over
takes what the one before it had, or is put together of two halves that are made once.
   hops.py CLINK WORK_DIR [--sample]
Fails when 1,000 slides cost more than 1.3 times one, of aggregates that cannot be taken out of a window again or DISTINCT 1.5 times."""
import os
import re
import shutil
import subprocess
import sys

ROWS, SECONDS, SIZE = 1_000_000, 100, 10
SLIDES = [1, 10, 100, 1000]
QUERIES = {
    "all rows": ("e TIMESTAMP_LTZ(3), n BIGINT, s BIGINT", "window_end, COUNT(*), SUM(v)", ""),
    "least and greatest of four keys": ("k BIGINT, a BIGINT, b BIGINT", "k, MIN(v), MAX(v)", ", k"),
    "doubles of four keys": ("k BIGINT, s DOUBLE, d DOUBLE", "k, SUM(d), STDDEV_POP(d)", ", k"),
    "four keys": ("k BIGINT, n BIGINT, a DOUBLE", "k, COUNT(*), AVG(v)", ", k"),
    "different values": ("n BIGINT", "COUNT(DISTINCT v)", ""),
}
ALLOWED = {"all rows": 1.3, "four keys": 1.3}
ALLOWED_ELSE = 1.5  # halves merge each slice twice and copy a front; a value goes into the list of its slice, into the window and out of it
SKIPPED = 77


def make_input(path):
    if os.path.exists(path):
        return
    with open(path + ".part", "w") as f:
        f.write("t,k,v\n")
        f.writelines(f"{i * SECONDS * 1000 // ROWS},{i % 4},{i % 1009}\n" for i in range(ROWS))
    os.rename(path + ".part", path)


def count(clink, work, name, slides):
    columns, select, key = QUERIES[name]
    with open(f"{work}/hop.sql", "w") as f:
        f.write(f"""CREATE TABLE src (t BIGINT, k BIGINT, v BIGINT, d AS CAST(v AS DOUBLE)) WITH (connector='file', path='{work}/hop.csv', header='true', event_time_column='t');
CREATE TABLE snk ({columns}) WITH (connector='blackhole');
INSERT INTO snk SELECT {select} FROM src GROUP BY HOP(t, INTERVAL '{SIZE / slides:.3f}' SECOND, INTERVAL '{SIZE}' SECOND){key};
""")
    run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={work}/hop.callgrind", clink, "run", "-p", "1", f"{work}/hop.sql"],
                         capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not found:
        sys.exit(f"{name}, {slides} slides: failed under callgrind: {run.stderr[-800:]}")
    return int(found[1])


def main():
    clink, work = sys.argv[1:3]
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        sys.exit(SKIPPED)
    os.makedirs(work, exist_ok=True)
    make_input(f"{work}/hop.csv")
    steep, sample = [], "--sample" in sys.argv
    slides = [SLIDES[0], SLIDES[-1]] if sample else SLIDES
    for name in list(QUERIES)[sample:]:
        counts = [count(clink, work, name, n) for n in slides]
        print(f"{name}: " + ", ".join(f"{n:,} slides {c / ROWS:.0f} a row ({c / counts[0]:.2f}x)" for n, c in zip(slides, counts)))
        allowed = ALLOWED.get(name, ALLOWED_ELSE)
        steep += [f"{name} ({allowed})"] if max(counts) > allowed * counts[0] else []
    if steep:
        sys.exit(f"a hop of many slides costs more times a tumbling window than it may: {', '.join(steep)}")


if __name__ == "__main__":
    main()
