"""Hops of many slides that are killed and come back at other parallelisms: what windows have in common is in no checkpoint; rows that are late
change windows that were said before the kill."""
import collections
import random
import signal
import subprocess

import pytest
from conftest import CLINK, read_rows, run_clink
from test_windows import SEED, SHAPES, disordered, iso, table, write

CALL, WINDOWS = SHAPES[4]


SETS = "COUNT(DISTINCT v)", lambda v: len(set(v))
BOTH = "COUNT(DISTINCT v) * 1000 + MIN(v)", lambda v: len(set(v)) * 1000 + min(v)


@pytest.mark.parametrize("last,model,lateness", [("MIN(v)", min, 0), (*SETS, 0), (*BOTH, 0), (*BOTH, 4000)])
def test_kill_nine_and_restart(tmp_path, last, model, lateness):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    data = disordered(rnd, 100_000, 4_000_000, 5000)
    write(tmp_path / "src.ndjson", data)
    groups = collections.defaultdict(list)
    for t, k, v in data:
        for w in WINDOWS(t):
            groups[k, iso(w[0])].append(v)
    script = tmp_path / "job.sql"
    late, key, mode = (f", allowed_lateness_ms='{lateness}'", ", PRIMARY KEY (k, s) NOT ENFORCED", ", mode='upsert'") if lateness else ("", "", "")
    script.write_text(table(tmp_path / "src.ndjson", 5000 - lateness, late) +
                      f"CREATE TABLE snk (k VARCHAR, s TIMESTAMP_LTZ(3), n BIGINT, x BIGINT{key}) WITH (connector='file', format='json', "
                      f"path='{tmp_path}/out'{mode});\nINSERT INTO snk SELECT k, window_start, COUNT(*), {last} FROM src GROUP BY {CALL}, k;\n")
    base = [CLINK, "run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "--checkpoint-interval-ms", "20"]
    for _ in range(5):
        proc = subprocess.Popen(base + ["-p", str(rnd.choice([1, 2, 3, 4]))], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            proc.wait(rnd.uniform(0.1, 0.6))
        except subprocess.TimeoutExpired:
            proc.send_signal(signal.SIGKILL)
        err = proc.communicate()[1].decode()
        assert proc.returncode in (0, -signal.SIGKILL), err
        if proc.returncode == 0:
            break
    run_clink("run", str(script), "--checkpoint-dir", str(tmp_path / "ck"), "-p", 2)
    got = read_rows(tmp_path / "out")
    assert len(got) == len(groups) and {(r["k"], r["s"]): (r["n"], r["x"]) for r in got} == {w: (len(v), model(v)) for w, v in groups.items()}
