"""docs/functions.md is what the function tables say, and every example in it gives the result it shows."""
import os
import subprocess

import pytest
from conftest import BUILD, TOP, run_clink

DOC = os.path.join(BUILD, "functions_doc")


def examples():
    out = subprocess.run([DOC, "--examples"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in out.splitlines()]


def test_page_is_current():
    page = subprocess.run([DOC], capture_output=True, text=True, check=True).stdout
    assert open(os.path.join(TOP, "docs", "functions.md")).read() == page, "run make docs"


def test_examples():
    wrong = []
    for sql, want in examples():
        r = run_clink("run", "--format", "table", "-e", sql if sql.startswith("SELECT") else "SELECT " + sql, ok=False)
        got = ", ".join(c.strip() for c in r.lines[2].split(" | ")) if r.code == 0 and len(r.lines) > 3 else r.err
        if got != want:
            wrong.append(f"{sql}: {got!r}, not {want!r}")
    assert not wrong, "\n".join(wrong)
