"""Jobs of plugins that some build once ran are restored by every later one: tests/golden/plugins/NAME has the plugin with the header it was made
with, its input, and the checkpoint directory and the output of a job that was killed half way, between a manifest and its commit: with positions of
the plugin's source, committables of its sink, a value, a map and a list for each key, and timers. The plugin is compiled with its own header
(docs/decisions, "The plugin of an earlier build is compiled anew"), and the job goes on to the end.

`python3 tests/system/test_golden_plugins.py CLINK DIR` makes input and checkpoints beside a plugin in DIR; those that are there are never changed."""
import os
import random
import shutil
import subprocess
import sys
from collections import Counter

import pytest

from conftest import TOP, read_texts, run_clink

GOLDEN = os.path.join(TOP, "tests", "golden", "plugins")


def readings():
    dice, ms, rows = random.Random(9), 1704067200000, []
    for i in range(3000):
        ms += dice.randint(0, 2000)
        rows.append((dice.choice(["a", "b", "a device with a long name", "d", "e", "f"][:1 + (i // 100) % 6]), ms, dice.randint(0, 99)))
    return rows


def want():
    """A device that says nothing for a minute: how often it was heard, in how many minutes, with how many values."""
    out, heard = Counter(), {}
    for device, ms, _ in readings():
        times = heard.setdefault(device, [])
        if times and ms - times[-1] > 60000:
            out[device, *said(times)] += 1
            times.clear()
        times.append(ms)
    for device, times in heard.items():
        out[device, *said(times)] += 1
    return out


def said(times):
    return times[-1], len(times) + 1000 * len({ms // 60000 for ms in times}) + 1000000 * len(times)


def lines(folder):
    return Counter((d, int(ms), int(n)) for _, text in read_texts(folder) for d, ms, n in (line.split(",") for line in text.split("\n")[:-1]))


def compiled(where):
    subprocess.run(["gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", f"-I{where}", f"{where}/plugin.c", f"{where}/tables.c", "-o", f"{where}/golden.so"], check=True)


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("name", sorted(os.listdir(GOLDEN)))
def test_an_old_job_of_a_plugin_goes_on(name, parallelism, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(os.path.join(GOLDEN, name), old)
    compiled(old)
    r = run_clink("check-savepoint", "ck", "--expected", "golden.so", cwd=old, ok=False)
    assert r.code == 0 and "compatible with golden.so" in r.out, r.out + r.err
    before = lines(old / "out")
    assert before and sum(before.values()) < sum(want().values()) and not before - want()  # it was half way
    assert any(n.startswith(".staged") for n in os.listdir(old / "out"))  # with something prepared that was not committed
    run_clink("run", "--job", "golden.so", "--checkpoint-dir", "ck", "-p", parallelism, cwd=old)
    assert lines(old / "out") == want()
    assert not any(n.startswith(".staged") for n in os.listdir(old / "out"))


def make(clink, where):
    os.makedirs(os.path.join(where, "in"))
    os.makedirs(os.path.join(where, "out"))
    with open(os.path.join(where, "in", "all.csv"), "w") as f:
        f.writelines(f"{device},{ms},{value}\n" for device, ms, value in readings())
    compiled(where)
    for n in range(3, 60):  # a manifest whose checkpoint has committables, and at least one before it has been committed
        subprocess.run([clink, "run", "--job", "golden.so", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "1", "--set", "batch_rows=10"], cwd=where, check=False,
                       env={**os.environ, "CLINK_FAULT": f"checkpoint.after_manifest:{n}:kill"})
        there = os.listdir(os.path.join(where, "out"))
        if any(f.startswith(".staged") for f in there) and any(f.startswith("part-") for f in there):
            break
        shutil.rmtree(os.path.join(where, "ck"))
        shutil.rmtree(os.path.join(where, "out"))
        os.makedirs(os.path.join(where, "out"))
    os.remove(os.path.join(where, "golden.so"))


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2])
