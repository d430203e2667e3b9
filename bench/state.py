"""What state costs: make bench-state.   state.py [-k 10000000] [-n 1000000]
Checkpoints of a GROUP BY over k BIGINT keys in memory: how long a barrier keeps a subtask from its input, how fast a full snapshot is
written, what a delta holds after few changes, how long a restore takes; and NEXMark q5 and q17 with a checkpoint every second beside none.
By itself, in CPU time of its thread (checkpoint_bench): the barrier's pause by the size of the state, a full snapshot to a file in memory,
a restore. The same GROUP BY on each state backend. Prints a table for docs/benchmarks.md."""
import argparse
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs
from run_ours import CLINK, run

WORK = runs.WORK + "/state"
SCRIPT = f"""CREATE TABLE src (k BIGINT, v BIGINT) WITH (connector='file', format='json', path='{WORK}/in.ndjson', follow='true');
CREATE TABLE snk (k BIGINT, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='blackhole');
INSERT INTO snk SELECT k, COUNT(*) AS n, SUM(v) AS s FROM src GROUP BY k;
"""


def manifests():
    out = []
    for name in os.listdir(WORK + "/ck") if os.path.isdir(WORK + "/ck") else []:
        if name.startswith("checkpoint-") and name.endswith(".json"):
            with open(f"{WORK}/ck/{name}") as f:
                out.append(json.load(f))
    return sorted(out, key=lambda m: m["checkpoint"])


def start(interval_ms):
    with open(WORK + "/state.sql", "w") as f:
        f.write(SCRIPT)
    return subprocess.Popen([CLINK, "run", WORK + "/state.sql", "--checkpoint-dir", WORK + "/ck", "--checkpoint-interval-ms", str(interval_ms),
                             "--checkpoint-retained", "1000"], stderr=subprocess.PIPE, text=True)


def until(what, p, seconds=300):
    end = time.monotonic() + seconds
    while not (got := what()):
        if p.poll() is not None or time.monotonic() > end:
            sys.exit(f"the run ended or took too long: {p.stderr.read() if p.poll() is not None else ''}")
        time.sleep(0.02)
    return got


def new_bytes(m, kind):
    """Of the files that this checkpoint wrote itself."""
    return sum(f["bytes"] for f in m["files"] if f["path"].endswith(f"-{m['checkpoint']}.snap") and f["kind"] == kind)


def quiet(p, after):
    """Two checkpoints beyond `after` that wrote next to nothing: all that had come is in them."""
    def is_quiet():
        last = [m for m in manifests() if m["checkpoint"] > after][-2:]
        return len(last) == 2 and all(new_bytes(m, "base") + new_bytes(m, "delta") < 1 << 16 for m in last)
    until(is_quiet, p)


def keys(k):
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    if not os.path.exists(runs.WORK + "/keys_gen"):
        subprocess.run(["cc", "-O2", "-o", runs.WORK + "/keys_gen", runs.HERE + "/keys_gen.c"], check=True)
    with open(WORK + "/in.ndjson", "w") as f:
        subprocess.run([runs.WORK + "/keys_gen", str(k)], stdout=f, check=True)
    p = start(500)
    until(lambda: sum(f["bytes"] for m in manifests()[-1:] for f in m["files"]) > 20 * k, p)
    quiet(p, manifests()[-1]["checkpoint"])
    at = manifests()[-1]["checkpoint"]
    with open(WORK + "/in.ndjson", "a") as f:
        for i in range(1000):
            f.write('{"k":%d,"v":1}\n' % ((i * 0x9E3779B97F4A7C15 % 2**64) >> 1))
    until(lambda: [m for m in manifests() if m["checkpoint"] > at and new_bytes(m, "delta") > 10000], p)
    delta = max(new_bytes(m, "delta") for m in manifests() if m["checkpoint"] > at)
    p.send_signal(signal.SIGUSR2)
    p.wait(300)
    done = manifests()
    save, ms = done[-1], max(done[-1]["phases"]["acknowledge"], 1)
    began = time.monotonic()
    p = start(1)
    until(lambda: manifests()[-1]["checkpoint"] > save["checkpoint"], p)
    next_one = next(m for m in manifests() if m["checkpoint"] > save["checkpoint"])
    restore = time.monotonic() - began - next_one["phases"]["acknowledge"] / 1000  # less the first checkpoint's own time
    p.send_signal(signal.SIGINT)
    p.wait(60)
    size = new_bytes(save, "base")
    return {"keys": k, "checkpoints while reading": len(done), "longest stop of a subtask at a barrier, ms": max(m["phases"].get("barrier", 0) for m in done),
            "full snapshot, MB": round(size / 1e6), "full snapshot, MB/s": round(size / 1e3 / ms),
            "delta after 1,000 changed keys, kB": round(delta / 1e3), "restore, s": round(restore, 2)}


def disk_rate(size):
    """MB/s of the disk by itself, `size` bytes past the page cache and an fsync: what a snapshot cannot pass."""
    piece = mmap.mmap(-1, 8 << 20)
    piece.write(os.urandom(len(piece)))
    path, best = WORK + "/disk", 0
    for _ in range(3):
        f = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)
        began = time.monotonic()
        for _ in range(0, size, len(piece)):
            os.write(f, piece)
        os.fsync(f)
        best = max(best, -(-size // len(piece)) * len(piece) / 1e6 / (time.monotonic() - began))
        os.close(f)
        os.unlink(path)
    return round(best)


def snapshot_rate(ck):
    """MB/s of a full snapshot of the keys into ck, the best of three bounded runs that take it at their end."""
    with open(WORK + "/whole.sql", "w") as f:
        f.write(SCRIPT.replace(", follow='true'", ""))
    best, size = 0, 0
    for _ in range(3):
        shutil.rmtree(ck, ignore_errors=True)
        subprocess.run([CLINK, "run", WORK + "/whole.sql", "--checkpoint-dir", ck, "--checkpoint-interval-ms", "0"], check=True, stderr=subprocess.PIPE)
        (name,) = (n for n in os.listdir(ck) if n.startswith("checkpoint-") and n.endswith(".json"))
        with open(f"{ck}/{name}") as f:
            m = json.load(f)
        size = sum(f["bytes"] for f in m["files"])
        best = max(best, size / 1e3 / max(m["phases"]["acknowledge"], 1))
    shutil.rmtree(ck, ignore_errors=True)
    return round(best), size


def snapshots():
    to_disk, size = snapshot_rate(WORK + "/ck")
    out = {"full snapshot at the end of a run, MB": round(size / 1e6), "the same to the disk, MB/s": to_disk, "the disk itself, MB/s": disk_rate(size)}
    if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 2 * size:
        out["the same to a file in memory, MB/s"] = snapshot_rate(f"/dev/shm/clink-bench-{os.getpid()}")[0]
    return out


def in_cpu_time(groups):
    """What checkpoint_bench says of so many BIGINT groups, its files in memory where there is room."""
    folder = "/dev/shm" if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 100 * groups else WORK
    folder += f"/clink-bench-{os.getpid()}"
    try:
        said = subprocess.run([os.path.join(os.path.dirname(CLINK), "bench", "checkpoint_bench"), str(groups), folder, "300"], check=True, capture_output=True, text=True).stdout
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    mib, p50, p99, most = re.search(r"over (\d+) MiB of state: p50 ([\d.]+) us, p99 ([\d.]+) us, max ([\d.]+) us", said).groups()
    rate = max(float(x) for x in re.findall(r"base of .*\(([\d.]+) GB/s CPU\)", said))
    rows, cpu = re.search(r"restore of (\d+) rows .* ([\d.]+) s CPU", said).groups()
    return {f"barrier over {mib} MiB of state, us: p50, p99, max": f"{p50}, {p99}, {most}",
            f"full snapshot of {mib} MiB of state, GB a CPU second": rate,
            f"restore of {int(rows):,} groups, CPU s": float(cpu)}


def nexmark(q, n):
    best = {}
    for _ in range(3):
        for interval in (0, 1000):
            shutil.rmtree(WORK + "/nexmark", ignore_errors=True)
            flags = ("--checkpoint-dir", WORK + "/nexmark", "--checkpoint-interval-ms", str(interval)) if interval else ()
            r = run(q, n, flags=flags)
            if not r["ok"]:
                sys.exit(r["err"])
            if interval and r["cpu"] < best.get(interval, 1e9):
                taken = max(int(name[11:-5]) for name in os.listdir(WORK + "/nexmark") if re.fullmatch(r"checkpoint-\d+\.json", name))
            best[interval] = min(best.get(interval, 1e9), r["cpu"])
    each = max(best[1000] - best[0], 0) / max(taken, 1)  # of a second that a busy core has; on a loaded machine more of them fall into a run
    return round(best[0], 3), round(best[1000], 3), taken, round(each * 1000, 1), f"{each:.1%}"


def backends(k):
    """The same GROUP BY, bounded: in memory, with a file or a RocksDB that nothing needs, and with a third of the memory its state takes."""
    sql = SCRIPT.replace(", follow='true'", "")
    with open(WORK + "/bounded.sql", "w") as f:
        f.write(sql)
    few = str(max(k * 36 // 3, 16 << 20))
    ways = {"memory": (), "file, state fits": ("--state-backend", f"file:{WORK}/work"),
            "RocksDB, state fits": ("--state-backend", f"rocksdb:{WORK}/work"),
            "file, a third of what state takes": ("--memory", few, "--state-backend", f"file:{WORK}/work"),
            "RocksDB, a third of what state takes": ("--memory", few, "--state-backend", f"rocksdb:{WORK}/work")}
    best = {}
    for _ in range(3):
        for name, flags in ways.items():
            shutil.rmtree(WORK + "/work", ignore_errors=True)
            before, began = os.times(), time.monotonic()
            subprocess.run([CLINK, "run", WORK + "/bounded.sql", "--checkpoint-dir", WORK + "/work/ck", *flags], check=True, stderr=subprocess.PIPE)
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            best[name] = tuple(map(min, best.get(name, (1e9, 1e9)), (time.monotonic() - began, cpu)))
    return best


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-k", type=int, default=10000000)
    a.add_argument("-n", type=int, default=1000000)
    o = a.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}\n\n| | |\n|---|---|")
    os.makedirs(WORK, exist_ok=True)
    for measure in (lambda: in_cpu_time(2000000), lambda: in_cpu_time(10000000), lambda: in_cpu_time(28000000), lambda: keys(o.k), snapshots):
        for name, value in measure().items():
            print(f"| {name} | {value if isinstance(value, str) else format(value, ',')} |", flush=True)
    ways = backends(o.k)
    for name, (wall, cpu) in ways.items():
        print(f"| GROUP BY of {o.k:,} keys, {name}: wall s, CPU s, that of memory's | {wall:.2f}, {cpu:.2f}, {cpu / ways['memory'][1]:.2f} |", flush=True)
    for q in ("q5", "q17"):
        if os.path.exists(f"{runs.WORK}/data/{o.n}"):
            print("| %s over %s events: CPU s without, with a checkpoint every second, of them, CPU ms each, of a second | %s, %s, %s, %s, %s |" % (q, f"{o.n:,}", *nexmark(q, o.n)), flush=True)
        else:
            print(f"{q}: no data (bench/setup.sh {o.n})")
    shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    main()
