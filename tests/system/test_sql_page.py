"""Every example of docs/sql.md and docs/event-time.md gives what the page shows. Blocks: `sh` makes files, `sql setup` stays in front of all later ones, `sql` runs (`sql changes`
with --changes) and the `output` or `error` behind it is compared."""
import os
import re
import subprocess

import pytest
from conftest import BUILD, TOP, run_clink


def examples(page):
    """(language, words behind it, text, expected kind, expected words, expected text)"""
    found = re.findall(r"^```(\S+)([^\n]*)\n(.*?)^```$", open(os.path.join(TOP, "docs", page)).read(), re.S | re.M)
    out = []
    for lang, words, text in found:
        if lang in ("output", "error"):
            assert out and out[-1][3] is None, text
            out[-1][3:] = [lang, words.split(), text]
        else:
            assert lang in ("sh", "sql"), lang
            out.append([lang, words.split(), text, None, [], ""])
    return out


def run_one(words, text, setup, expected, unordered, want, cwd):
    args = ["run"] + (["--changes"] if "changes" in words else []) + ["-e", setup + text]
    r = run_clink(*args, cwd=cwd, ok=False)
    if expected == "error":
        assert r.code == 1 and want.strip() in r.err, f"{text}\n{r.err}"
        return
    assert r.code == 0, f"{text}\n{r.err}"
    got, want = r.out.splitlines(), want.splitlines()
    assert (sorted(got) == sorted(want)) if unordered else (got == want), f"{text}\n{r.out}"


@pytest.mark.parametrize("page,least", [("sql.md", 20), ("event-time.md", 6)])
def test_examples(tmp_path, page, least):
    setup, ran = "", 0
    for lang, words, text, expected, expected_words, want in examples(page):
        if lang == "sh":
            env = {**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]}
            p = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=tmp_path, env=env, check=True, capture_output=True, text=True)
            assert p.stdout == want, text
        elif "setup" in words:
            setup += text
        else:
            run_one(words, text, setup, expected, "unordered" in expected_words, want, tmp_path)
            ran += 1
    assert ran >= least
