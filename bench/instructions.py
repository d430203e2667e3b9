"""Counts the instructions of five fixed queries with callgrind and holds them against instructions.json.
   instructions.py CLINK WORK_DIR COMPILER [--update]
Time on a shared machine says little about 5%; a count of instructions does. The file names what it was made with: under another compiler, C library
or kind of processor the test says that it skips (exit 77), as it does without valgrind."""
import json
import os
import platform
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = HERE + "/instructions.json"
QUERIES = ["q1", "q14", "q16", "q17", "q21"]
EVENTS = 20000
ALLOWED = 1.05
SKIPPED = 77


def version(compiler):
    """The first line of --version without the name, which says cc or gcc for the same program."""
    line = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return line.split(" ", 1)[1]


def made_with(compiler):
    """What a count depends on besides our own code."""
    with open("/proc/cpuinfo") as f:
        wide = "avx2" if " avx2 " in f.read() else "no avx2"
    return {"compiler": version(compiler), "libc": " ".join(platform.libc_ver()), "machine": f"{platform.machine()}, {wide}"}


def make_input(work):
    data, part = f"{work}/{EVENTS}", f"{work}/{EVENTS}.part"
    if not os.path.exists(data):  # written beside and renamed, so that a folder that exists is complete
        os.makedirs(part, exist_ok=True)
        subprocess.run(["cc", "-O2", "-o", work + "/nexmark_gen", HERE + "/nexmark_gen.c", "-lm"], check=True)
        subprocess.run([work + "/nexmark_gen", str(EVENTS), part], check=True, stdout=subprocess.DEVNULL)
        os.rename(part, data)
    return data


def script(q, data):
    with open(HERE + "/nexmark/tables.sql") as f:
        tables = f.read().replace("${DATA}", data).replace(", WATERMARK FOR rt AS rt - INTERVAL '4' SECOND", "")
    with open(f"{HERE}/nexmark/{q}.sql") as f:
        sink, select = f.read().split("\n", 1)
    return f"{tables}CREATE TABLE snk ({sink.split(':', 1)[1].strip()}) WITH (connector='blackhole');\nINSERT INTO snk\n{select}"


def count(clink, work, data, q):
    path = f"{work}/{q}.sql"
    with open(path, "w") as f:
        f.write(script(q, data))
    run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={work}/{q}.callgrind", clink, "run", "-p", "1", path],
                         capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not found:
        sys.exit(f"{q} failed under callgrind: {run.stderr[-800:]}")
    return int(found[1])


def main():
    clink, work, compiler = sys.argv[1:4]
    update = "--update" in sys.argv
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        sys.exit(SKIPPED)
    now = made_with(compiler)
    kept = {}
    if os.path.exists(KEPT):
        with open(KEPT) as f:
            kept = json.load(f)
    if not update and kept.get("made with") != now:
        print(f"skipped: counts were made with {kept.get('made with')}, this is {now}")
        sys.exit(SKIPPED)
    os.makedirs(work, exist_ok=True)
    data = make_input(work)
    counts = {q: count(clink, work, data, q) for q in QUERIES}
    if update:
        with open(KEPT, "w") as f:
            json.dump({"made with": now, "events": EVENTS, "instructions": counts}, f, indent=2)
            f.write("\n")
    grown = []
    for q, n in counts.items():
        was = kept.get("instructions", {}).get(q, n)
        print(f"{q}: {n:,} instructions, {n / EVENTS:.0f} an event, {100 * (n / was - 1):+.1f}%")
        if n > was * ALLOWED:
            grown.append(q)
    if grown and not update:
        sys.exit(f"grown by more than {100 * ALLOWED - 100:.0f}%: {', '.join(grown)}; if it is worth it, `make instructions` and commit bench/instructions.json")


if __name__ == "__main__":
    main()
