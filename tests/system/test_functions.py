"""docs/functions.md is what the function tables say, and every example in it gives the result it shows."""
import hashlib
import json
import os
import subprocess

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


def test_digests(tmp_path):
    """Of texts around the block sizes of the hashes, and NULL, as hashlib has them; over a column, where rows share a context."""
    texts = ["x" * n for n in (0, 1, 55, 56, 63, 64, 65, 111, 112, 119, 120, 127, 128, 129, 1000, 70000)] + ["größe", None]
    (tmp_path / "t.ndjson").write_text("".join(json.dumps({"i": i, "s": s}) + "\n" for i, s in enumerate(texts)))
    names = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]
    r = run_clink("run", "-p", "2", "--format", "ndjson", "-e",
                  f"CREATE TABLE t (i INT, s VARCHAR) WITH (connector = 'file', path = '{tmp_path}/t.ndjson', format = 'json'); "
                  f"SELECT i, {', '.join(f'{n.upper()}(s) AS {n}' for n in names)}, MD5(CAST(s AS BYTES)) AS b FROM t ORDER BY i")
    for row, s in zip(map(json.loads, r.lines), texts, strict=True):
        want = {n: None if s is None else getattr(hashlib, n)(s.encode()).hexdigest() for n in names}
        assert {n: row[n] for n in names} == want and row["b"] == want["md5"], row["i"]


def test_digests_that_are_not_reached_and_not_there():
    r = run_clink("run", "--format", "ndjson", "-e", "SELECT CASE WHEN 1 = 2 THEN MD5('a') ELSE 'none' END AS d, COALESCE(MD5(NULL), 'x') AS c")
    assert r.rows == [{"d": "none", "c": "x"}]
    r = run_clink("run", "-e", "SELECT SHA2('x', 256)", ok=False)
    assert r.code != 0 and "SHA256(x)" in r.err
