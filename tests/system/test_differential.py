"""Some hundred random queries give what DuckDB gives, at -p 1 and 3 and as changes. `make differential N=5000 SEED=1` runs more."""
import os
import subprocess
import sys

import pytest
from conftest import BUILD, TOP

SCRIPT = os.path.join(TOP, "tests", "differential", "differential.py")


@pytest.mark.skipif(os.environ.get("CLINK_SANITIZE", "") != "", reason="a sanitized library needs its runtime preloaded")
def test_random_queries(flights):
    p = subprocess.run([sys.executable, SCRIPT, "--n", "300", "--seed", os.environ.get("CLINK_TEST_SEED", "1"), "--seconds", "60", "--data", flights,
                        "--library", os.path.join(BUILD, "libclink.so")], capture_output=True, text=True)
    print(p.stdout)
    assert p.returncode == 0, p.stdout + p.stderr


def test_what_differs_is_seen():
    sys.path.insert(0, os.path.dirname(SCRIPT))
    import engines

    assert engines.difference([(1, "a", 0.1)], [(1, "a", 0.1 + 1e-12)], False) is None
    assert engines.difference([(2, None), (1, "a")], [(1, "a"), (2, None)], False) is None
    assert engines.difference([(2,), (1,)], [(1,), (2,)], True)
    for ours, duck in (([(1,)], [(2,)]), ([(1,)], [(1,), (1,)]), ([(None,)], [(0,)]), ([("",)], [(None,)]), ([(1.0,)], [(1.1,)]), ([], [(1,)])):
        assert engines.difference(ours, duck, False)
