"""What every runner needs: where things are, run a child and account its CPU and memory, append a result line."""
import json
import os
import signal
import subprocess
import sys
import time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `timeout` on the harness also ends its child

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
WORK = os.environ.get("BENCH_WORK", "/var/tmp/clink-bench")  # data, outputs, results, environments: made by setup.sh
PYTHON = WORK + "/v/bin/python"
COLS = {
    "person": "id BIGINT, name {s}, emailaddress {s}, creditcard {s}, city {s}, state {s}, {q}datetime{q} BIGINT, extra {s}",
    "auction": "id BIGINT, itemname {s}, description {s}, initialbid BIGINT, reserve BIGINT, {q}datetime{q} BIGINT, expires BIGINT, "
               "seller BIGINT, category BIGINT, extra {s}",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel {s}, url {s}, {q}datetime{q} BIGINT, extra {s}",
}
QUERIES = [f"q{i}" for i in (0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)]


def chosen(text):
    return QUERIES if text == "all" else [q for q in text.split(",") if q]


def measure(argv, timeout, env=None, stdout=None):
    """-> dict(cpu, user, wall, rss_mb, rc, out): CPU is user + system of the whole child tree that was waited for; rss_mb the greatest
    resident size seen (polled, since what wait4 says includes the size of this process at the fork). out is what the child wrote; with
    `stdout` a file takes standard output and out has only standard error."""
    log_path = f"{WORK}/child.{os.getpid()}.log"
    with open(log_path, "w+") as log, open(stdout or os.devnull, "w") as to_file:
        started = time.monotonic()
        child = subprocess.Popen(argv, stdout=to_file if stdout else log, stderr=log if stdout else subprocess.STDOUT,
                                 env={**os.environ, **(env or {})}, start_new_session=True)
        try:
            r = _wait(child, started, timeout)
        finally:
            if child.returncode is None:
                child.kill()
        log.seek(0)
        r["out"] = log.read()
    os.unlink(log_path)
    return r


def _resident_kb(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            return next((int(line.split()[1]) for line in f if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


def _wait(child, started, timeout):
    timed_out, peak_kb = False, 0
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        peak_kb = max(peak_kb, _resident_kb(child.pid))
        if time.monotonic() - started > timeout:
            timed_out = True
            os.kill(child.pid, signal.SIGKILL)
            _, status, usage = os.wait4(child.pid, 0)
            break
        time.sleep(0.002)
    wall = time.monotonic() - started
    child.returncode = os.waitstatus_to_exitcode(status)  # reaped here, not by subprocess
    return dict(cpu=round(usage.ru_utime + usage.ru_stime, 3), user=round(usage.ru_utime, 3), wall=round(wall, 3),
                rss_mb=round(peak_kb / 1024, 1), rc="timeout" if timed_out else child.returncode)


def record(path, row):
    with open(path, "a") as f:
        f.write(json.dumps(row) + "\n")
    print({k: v for k, v in row.items() if k != "err"}, (row.get("err") or "")[-300:].replace("\n", " | "), flush=True)
