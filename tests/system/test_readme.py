"""Every block of the README runs and prints what it says."""
import os
import re
import subprocess

import pytest
from conftest import BUILD, TOP


def blocks(path):
    """(sh text, output text or None, unordered) in order."""
    found = re.findall(r"^```(\S+)([^\n]*)\n(.*?)^```$", open(path).read(), re.S | re.M)
    out = []
    for lang, info, body in found:
        if lang == "sh":
            out.append([body, None, False])
        elif lang == "output":
            out[-1][1:] = [body, "unordered" in info]
    return out


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md", "docs/command-line.md"])
def test_blocks(page, tmp_path):
    env = {**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]}
    ran = 0
    for sh, want, unordered in blocks(os.path.join(TOP, page)):
        if sh.lstrip().startswith(("make", "git")):
            continue  # this test is part of `make test`
        p = subprocess.run(["bash", "-euo", "pipefail", "-c", sh], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert p.returncode == 0, sh + p.stderr
        if want is not None:
            got, want = p.stdout.splitlines(), want.splitlines()
            if unordered:
                got, want = sorted(got), sorted(want)
            assert got == want, sh
        ran += 1
    assert ran >= 3
