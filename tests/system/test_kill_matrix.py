"""A sample of the kill matrix (kill_matrix.py; make kill-matrix runs all of it), and every point that is passed only where a barrier
overtakes something."""
import calendar
import collections
import json
import os
import random
import subprocess
import time

import kill_matrix
import pytest
from conftest import TOP
from kill_matrix import BESIDE, OVERTAKING, QUERIES, Cell, Job, Matrix, cell_of, cell_text, cells, twice

SEED = int(os.environ.get("CLINK_SEED", "1"))
SANITIZED = os.environ.get("CLINK_SANITIZE", "") != ""


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    return Matrix(str(tmp_path_factory.mktemp("kills")), SEED)


def test_a_sample(matrix):
    rnd = random.Random(SEED)
    todo = rnd.sample(list(cells(rnd)), 8 if SANITIZED else 22) + rnd.sample(list(twice(rnd)), 3 if SANITIZED else 8)
    reached = sum(matrix.run(c) for c in todo)
    assert reached * 2 > len(todo), "most of the kills never came"


@pytest.mark.parametrize("backend", ["rocksdb", "file"])
def test_a_sample_with_nothing_in_memory(tmp_path, backend):
    rnd = random.Random(SEED + 1)
    out = Matrix(str(tmp_path), SEED, backend)
    todo = rnd.sample(list(cells(rnd)), 3 if SANITIZED else 6) + rnd.sample(list(twice(rnd)), 1 if SANITIZED else 2)
    assert any([out.run(c) for c in todo]), "none of the kills ever came"


@pytest.mark.parametrize("backend", ["changelog", "changelog-inside", "changelog-rocksdb"])
def test_a_sample_with_a_changelog(tmp_path, backend):
    rnd = random.Random(SEED + 2)
    log = Matrix(str(tmp_path), SEED, backend)
    todo = rnd.sample(list(cells(rnd, backend=backend)), 2 if SANITIZED else 5) + rnd.sample(list(twice(rnd)), 1 if SANITIZED else 2)
    assert any([log.run(c) for c in todo]), "none of the kills ever came"


def windows_and_totals(rows):
    """What tests/plugins/tumbles.c is to say of them, shares added up."""
    sums = collections.defaultdict(lambda: [0, 0])
    for r in rows:
        us = calendar.timegm(time.strptime(r["ts"], "%Y-%m-%d %H:%M:%S")) * 1000000
        for line in (f"window,{r['k']},{us - us % 10000000}", f"total,{r['k']},0", f"shares,{r['k']}"):
            sums[line][0] += 1
            sums[line][1] += r["v"]
    return collections.Counter(f"{line},{n},{s}" for line, (n, s) in sums.items())


@pytest.mark.parametrize("backend", ["memory", "rocksdb", "changelog"])
def test_a_plugin(tmp_path, backend):
    """Each kind of state and of timer that a plugin can have, dealt out anew."""
    m = Matrix(str(tmp_path), SEED, backend)
    with open(os.path.join(m.input(QUERIES["plugin"]), "in.ndjson")) as f:
        assert m.answer(QUERIES["plugin"]) == windows_and_totals(map(json.loads, f))
    text = ("checkpoint.after_mark:2:kill aligned 1 4", "checkpoint.after_manifest:2:kill unaligned 4 3", "commit.before:2:kill aligned 4 1 restore.after_load:1:kill")
    assert any([m.run(cell_of(f"plugin {t}")) for t in text]), "none of the kills ever came"


@pytest.mark.skipif(SANITIZED, reason="a sanitizer wants to be preloaded first")
@pytest.mark.parametrize("query", ["clock", "plugin", "window", "text"])
def test_the_clock_is_set(tmp_path, query):
    """The wall clock goes an hour, a minute, a second to and fro every 5 ms, over a kill too: windows and timers of the clock lose no
    row and give none twice, and nothing else goes by it."""
    clock = tmp_path / "jumping_clock.so"
    subprocess.run(["gcc", "-std=c17", "-O2", "-shared", "-fPIC", f"{TOP}/tests/plugins/jumping_clock.c", "-o", str(clock)], check=True)
    dates = {subprocess.run(["date", "+%H%M"], capture_output=True, env={**os.environ, "LD_PRELOAD": str(clock), "CLINK_JUMPS": str(i)}).stdout for i in range(40)}
    assert len(dates) > 3, "the clock stands"
    m = Matrix(str(tmp_path), SEED, env={"LD_PRELOAD": str(clock), "CLINK_JUMPS": str(SEED)})
    text = ("checkpoint.after_manifest:2:kill aligned 1 4", "commit.before:2:kill unaligned 4 1", "checkpoint.after_mark:3:kill aligned 4 3 restore.after_load:1:kill")
    assert any([m.run(cell_of(f"{query} {t}")) for t in text]), "none of the kills ever came"


def test_what_does_not_end_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(kill_matrix, "HANGS", 3)
    job = Job(Matrix(str(tmp_path), SEED), QUERIES["text"], 0, "aligned")
    with pytest.raises(AssertionError, match=r"not at its end after 3 s \(-p 2, fault commit.before:1:stop"):
        job.start(2, "commit.before:1:stop")


def test_cells_are_written_as_they_are_read():
    """What is printed of one that failed runs it again."""
    rnd = random.Random(SEED)
    for c in [*cells(rnd), *twice(rnd)]:
        again = cell_of(cell_text(c))
        assert again == c or (c.point.startswith("restore.") and again == c._replace(ordinal=1))


@pytest.mark.parametrize("then", [4, 3])
def test_time_is_overtaken(tmp_path, then):
    """Subtasks far apart in event time when a barrier overtakes: what was under way to one was late for another after a restore."""
    slow = Matrix(str(tmp_path), SEED, "rocksdb")
    assert any([slow.run(Cell("window_join", "checkpoint.after_manifest", n, "unaligned", 4, then)) for n in (1, 2)]), "none of the kills ever came"


@pytest.mark.parametrize("point", BESIDE)
def test_beside_the_checkpoints(tmp_path, point):
    """Killed before and after all rows have been written beside the checkpoints, restored at the same and at another parallelism."""
    log = Matrix(str(tmp_path), SEED, "changelog")
    ways = ((q, p, then) for q in ("join", "interval") for p, then in ((1, 1), (1, 4), (4, 3)))  # state that grows, most of it as it was
    assert any([log.run(Cell(q, point, 1, "aligned", p, then)) for q, p, then in ways]), f"{point} was never reached"


@pytest.mark.parametrize("query", [n for n, q in QUERIES.items() if q.slow])
@pytest.mark.parametrize("point", OVERTAKING)
def test_what_is_under_way(matrix, point, query):
    """Killed where a barrier has overtaken something, restored at the same and at another parallelism. Whether there was something to
    overtake is up to the machine, on one with nothing else to do about every other time: until it was."""
    for then, second in ((4, None), (3, "checkpoint.after_manifest:2:kill")):
        cell = Cell(query, point, 1, "unaligned", 4, then, second)
        assert any(matrix.run(cell) for _ in range(15)), f"{point} was never reached"
