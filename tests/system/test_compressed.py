"""gzip and zstd input: the same rows as the plain file, damage named with its byte, restarts in the middle of a file."""
import gzip
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from conftest import CLINK

COLUMNS = "carrier VARCHAR, dep_delay BIGINT, origin VARCHAR, dest VARCHAR, distance BIGINT"
QUERY = "SELECT origin, COUNT(*) AS n, SUM(distance) AS d, COUNT(dep_delay) AS p FROM f GROUP BY origin ORDER BY origin"
WANT = [{"origin": "EWR", "n": 120835, "d": 127691515, "p": 117596}, {"origin": "JFK", "n": 111279, "d": 140906931, "p": 109416},
        {"origin": "LGA", "n": 104662, "d": 81619161, "p": 101509}]


def ddl(path, more=""):
    return (f"CREATE TABLE f ({COLUMNS}) WITH (connector='file', path='{path}', format='csv', header='true', null_string='NA'{more});\n")


@pytest.fixture(scope="module")
def packed(flights, tmp_path_factory):
    """flights.csv.gz, flights.csv.zst, and two members in one gzip file."""
    d = tmp_path_factory.mktemp("packed")
    with open(os.path.join(flights, "flights.csv"), "rb") as f:
        text = f.read()
    with gzip.open(d / "flights.csv.gz", "wb", compresslevel=1) as f:
        f.write(text)
    half = text.index(b"\n", len(text) // 2) - 7  # in the middle of a record
    (d / "two.csv.gz").write_bytes(gzip.compress(text[:half], 1) + gzip.compress(text[half:], 1))
    shutil.copy(d / "flights.csv.gz", d / "unnamed")
    import pyarrow as pa
    with pa.CompressedOutputStream(str(d / "flights.csv.zst"), "zstd") as f:
        f.write(text)
    shutil.copy(d / "flights.csv.zst", d / "unnamed_zst")
    return d


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("name", ["flights.csv.gz", "flights.csv.zst", "two.csv.gz", "unnamed", "unnamed_zst"])
def test_same_rows_as_plain(clink, packed, name, p):
    assert clink("run", "-p", p, "-e", ddl(packed / name) + QUERY).rows == WANT


def test_format_by_the_ending(clink, tmp_path):
    (tmp_path / "t.ndjson.gz").write_bytes(gzip.compress(b'\xef\xbb\xbf{"x":1}\n{"x":2}'))
    assert clink("run", "-e", "CREATE TABLE t (x BIGINT) WITH (connector='file', path='t.ndjson.gz'); SELECT SUM(x) AS s FROM t").rows == [{"s": 3}]


@pytest.mark.parametrize("name", ["flights.csv.gz", "flights.csv.zst"])
def test_a_cut_file_is_said(clink, packed, tmp_path, name):
    whole = (packed / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    r = clink("run", "-e", ddl(name) + QUERY, ok=False)
    assert r.code == 1 and f"{name}, byte {len(whole) // 2}: " in r.err and "the file ends in the middle" in r.err


@pytest.mark.parametrize("name", ["flights.csv.gz", "flights.csv.zst"])
def test_damage_is_said(clink, packed, tmp_path, name):
    whole = bytearray((packed / name).read_bytes())
    for i in range(len(whole) // 2, len(whole) // 2 + 64):
        whole[i] ^= 0x5A
    (tmp_path / name).write_bytes(bytes(whole))
    r = clink("run", "-e", ddl(name) + QUERY, ok=False)
    assert r.code == 1 and f"{name}, byte " in r.err and "reading " in r.err


def test_a_wrong_name_is_said(clink, tmp_path):
    (tmp_path / "plain.csv.gz").write_text("carrier\nAA\n")
    r = clink("run", "-e", ddl("plain.csv.gz") + QUERY, ok=False)
    assert r.code == 1 and "plain.csv.gz, byte 0: reading gzip" in r.err
    (tmp_path / "empty.csv.gz").write_bytes(b"")
    r = clink("run", "-e", ddl("empty.csv.gz") + QUERY, ok=False)
    assert r.code == 1 and "empty.csv.gz, byte 0: reading gzip: the file is empty" in r.err


@pytest.mark.parametrize("options,says", [(", follow='true'", "cannot be followed"), (", compression='lz4'", "compression")])
def test_refusals(clink, packed, options, says):
    r = clink("run", "-e", ddl(packed / "unnamed", options) + "SELECT COUNT(*) AS n FROM f", ok=False)
    assert r.code == 1 and says in r.err


@pytest.mark.parametrize("name,option", [("flights.csv.gz", ""), ("flights.csv.zst", ""), ("flights.csv.gz", ", compression='gzip'"), ("flights.csv.zst", ", compression='auto'")])
def test_packed_standard_input(clink, packed, name, option):
    """Unpacked as a file is, by its first bytes or the option; at any parallelism."""
    want = clink("run", "-e", ddl(packed / name) + QUERY)
    for p in (1, 3):
        r = clink("run", "-p", p, "-e", ddl("-", option) + QUERY, stdin=(packed / name).read_bytes())
        assert sorted(r.lines) == sorted(want.lines)


def trickled(args, pieces, cwd):
    """A run whose standard input comes in these pieces, each once the one before is read."""
    p = subprocess.Popen([CLINK, "run", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=False, cwd=cwd)
    try:
        for piece in pieces:
            p.stdin.write(piece)
            p.stdin.flush()
            time.sleep(0.002)
        p.stdin.close()
    except BrokenPipeError:
        pass
    out, err = p.stdout.read(), p.stderr.read()
    return p.wait(60), out.decode(), err.decode()


@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress, lambda b: gzip.compress(b[:7]) + gzip.compress(b[7:])])
def test_standard_input_byte_by_byte(tmp_path, pack):
    """The bytes that tell come one at a time; a plain first byte that packed input has, too, is no more than that."""
    text = b'(1,"a"\n(2,"b"\n'
    bytes_ = pack(text)
    code, out, err = trickled(["--format", "csv", "-e", "CREATE TABLE t (a VARCHAR, b VARCHAR) WITH (connector='file', format='csv', path='-'); SELECT a, b FROM t"],
                              [bytes_[i : i + 1] for i in range(len(bytes_))], tmp_path)
    assert code == 0 and out.splitlines() == ["a,b", "(1,a", "(2,b"], err


@pytest.mark.parametrize("name", ["flights.csv.gz", "flights.csv.zst"])
def test_damaged_standard_input_is_said(clink, packed, name):
    whole = bytearray((packed / name).read_bytes())
    r = clink("run", "-e", ddl("-") + QUERY, stdin=bytes(whole[: len(whole) // 2]), ok=False)
    assert r.code == 1 and "standard input, byte " in r.err and "reading " in r.err, r.err
    for i in range(len(whole) // 2, len(whole) // 2 + 64):
        whole[i] ^= 0x5A
    r = clink("run", "-e", ddl("-") + QUERY, stdin=bytes(whole), ok=False)
    assert r.code == 1 and "standard input" in r.err and r.out == "", r.err  # what came before the damage is known may be no record any more
    r = clink("run", "-e", ddl("-", ", compression='gzip'") + QUERY, stdin="carrier\nAA\n", ok=False)
    assert r.code == 1 and "standard input, byte 0: reading gzip" in r.err, r.err
    r = clink("run", "-e", ddl("-", ", compression='none'") + "SELECT COUNT(*) AS n FROM f", stdin=(packed / name).read_bytes()[:100], ok=False)
    assert r.code == 1 and "unpack" not in r.err


def test_the_line_of_a_bad_record(clink, packed):
    r = clink("run", "-e", "CREATE TABLE f (dep_time BIGINT NOT NULL, " + COLUMNS.replace("dep_delay BIGINT", "dep_delay VARCHAR") +
              f") WITH (connector='file', path='{packed}/flights.csv.gz', header='true'); SELECT COUNT(dep_time) FROM f", ok=False)
    assert r.code == 1 and "flights.csv.gz line 840 column 10" in r.err


@pytest.mark.parametrize("name", ["flights.csv.gz", "flights.csv.zst"])
def test_restart_in_the_middle(packed, tmp_path, name):
    (tmp_path / "job.sql").write_text(
        ddl(packed / name, ", rate_limit='200000'") +
        f"CREATE TABLE out ({COLUMNS}) WITH (connector='file', format='json', path='out');\nINSERT INTO out SELECT * FROM f;\n")
    args = [CLINK, "run", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "50", "job.sql"]
    manifests = lambda: len(list((tmp_path / "ck").glob("**/*.json"))) if (tmp_path / "ck").exists() else 0
    killed = 0
    for attempt in range(20):
        p = subprocess.Popen(args, cwd=tmp_path, stderr=subprocess.PIPE)
        seen = manifests()
        while p.poll() is None and attempt < 3 and manifests() <= seen:
            time.sleep(0.01)
        if p.poll() is None and attempt < 3:
            p.send_signal(signal.SIGKILL)
        err = p.communicate(timeout=100)[1]
        if p.returncode == 0:
            break
        killed += 1
        assert p.returncode == -signal.SIGKILL, err
    assert killed >= 1
    rows = [json.loads(line) for x in (tmp_path / "out").iterdir() for line in x.read_text().splitlines()]
    got = [{"origin": o, "n": sum(r["origin"] == o for r in rows), "d": sum(r["distance"] for r in rows if r["origin"] == o),
            "p": sum(r["dep_delay"] is not None for r in rows if r["origin"] == o)} for o in ("EWR", "JFK", "LGA")]
    assert got == WANT
