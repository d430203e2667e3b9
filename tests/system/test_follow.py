"""Followed files: every append is seen, however small and whenever it comes."""
import os
import random
import signal
import subprocess
import time

import pytest
from conftest import CLINK

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


def wait_for(count, path, proc, seconds=60):
    end = time.monotonic() + seconds
    while True:
        lines = path.read_text().splitlines()
        if len(lines) >= count:
            return lines
        assert proc.poll() is None, "the job ended"
        assert time.monotonic() < end, f"{len(lines)} of {count} rows came: {lines[-3:]}"
        time.sleep(0.01)


@pytest.mark.parametrize("pause", [0.0, 0.02, 0.3])
def test_rows_appended_one_by_one(tmp_path, pause):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    source, out = tmp_path / "s.ndjson", tmp_path / "out"
    source.write_text('{"i":0}\n')
    sql = f"CREATE TABLE c (i BIGINT) WITH (connector='file', format='json', path='{source}', follow='true'); SELECT i FROM c"
    with open(out, "w") as to:
        proc = subprocess.Popen([CLINK, "run", "-e", sql], stdout=to, stderr=subprocess.DEVNULL)
    try:
        wait_for(1, out, proc)
        for i in range(1, 12):
            with open(source, "a") as f:
                f.write('{"i":%d}\n' % i)
            if i % 3 == 0:
                assert wait_for(i + 1, out, proc)[-1] == '{"i":%d}' % i
            time.sleep(pause * rnd.random())
        assert wait_for(12, out, proc) == ['{"i":%d}' % i for i in range(12)]
    finally:
        proc.send_signal(signal.SIGKILL)
        proc.wait()


def test_a_file_that_comes_later_is_read_by_the_next_start(tmp_path):
    folder, script, err = tmp_path / "in", tmp_path / "job.sql", tmp_path / "err"
    folder.mkdir()
    script.write_text(f"""CREATE TABLE t (i BIGINT) WITH (connector='file', format='json', path='{folder}', follow='true');
CREATE TABLE o (i BIGINT) WITH (connector='print');
INSERT INTO o SELECT i FROM t;""")
    says = "clink: warning: t: the {} of {} that {} there now {} followed; one that comes later is read when the job is started again\n"
    for n, warning in ((1, says.format("1 file", folder, "is", "is")), (2, says.format("2 files", folder, "are", "are"))):
        (folder / f"{n}.json").write_text('{"i":%d}\n' % n)
        out = tmp_path / f"out{n}"
        with open(out, "w") as to, open(err, "w") as log:
            proc = subprocess.Popen([CLINK, "run", "--checkpoint-dir", tmp_path / "ck", script], stdout=to, stderr=log)
        try:
            assert wait_for(1, out, proc) == ['{"i":%d}' % n]
        finally:
            proc.send_signal(signal.SIGUSR2)  # with a savepoint
            assert proc.wait(60) == 0
        assert warning in err.read_text()
