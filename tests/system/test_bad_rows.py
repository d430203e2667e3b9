"""Records that do not fit their table, over real data: fail, skip, dead_letter, and feeding them back."""
import base64
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import CLINK

BAD, GOOD = 8255, 328521


def columns(flights, dep_time="BIGINT NOT NULL"):
    with open(os.path.join(flights, "flights.csv")) as f:
        names = f.readline().strip().replace('"', "").split(",")
    return ", ".join(f"{n} {dep_time if n == 'dep_time' else 'VARCHAR'}" for n in names)


def ddl(flights, more, dep_time="BIGINT NOT NULL"):
    return (f"CREATE TABLE dead (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='dead');\n"
            f"CREATE TABLE flights ({columns(flights, dep_time)}) WITH (connector='file', format='csv', "
            f"path='{flights}/flights.csv', header='true'{more});\n")


def bad_lines(flights):
    """Offset and bytes of each line that has no departure time."""
    out, at = [], 0
    with open(os.path.join(flights, "flights.csv"), "rb") as f:
        for n, line in enumerate(f):
            if n and line.split(b",")[3] == b"NA":
                out.append((at, line.rstrip(b"\n")))
            at += len(line)
    return out


def letters(tmp_path):
    rows = [json.loads(line) for p in sorted((tmp_path / "dead").iterdir()) for line in p.read_text().splitlines()]
    return sorted((r["offset"], base64.b64decode(r["raw"])) for r in rows), rows


COUNT = "SELECT COUNT(*) AS n, SUM(dep_time) AS s FROM flights"


def test_fail_names_the_place(clink, flights):
    r = clink("run", "-e", ddl(flights, "") + COUNT, ok=False)
    assert r.code == 1
    assert "flights.csv line 840 column 10" in r.err and '"NA" is not a BIGINT (dep_time)' in r.err


@pytest.mark.parametrize("p", [1, 3])
def test_skip_counts(clink, flights, p):
    r = clink("run", "-p", p, "-e", ddl(flights, ", on_error='skip'") + COUNT)
    assert r.rows[0]["n"] == GOOD
    assert f"{BAD} records of flights did not fit and were left out" in r.err
    # what is skipped does not depend on the columns that are asked for
    assert clink("run", "-p", p, "-e", ddl(flights, ", on_error='skip'") + "SELECT COUNT(carrier) AS n FROM flights").rows == [{"n": GOOD}]


@pytest.mark.parametrize("p", [1, 3])
def test_dead_letters_are_kept_byte_for_byte(clink, flights, tmp_path, p):
    r = clink("run", "-p", p, "-e", ddl(flights, ", on_error='dead_letter', dead_letter_table='dead'") + COUNT)
    assert r.rows[0]["n"] == GOOD
    got, rows = letters(tmp_path)
    assert len(got) == BAD and got == bad_lines(flights)
    assert {x["split"] for x in rows} == {f"{flights}/flights.csv"}
    assert {x["reason"].split(": ")[1] for x in rows} == {'"NA" is not a BIGINT'}


def test_dead_letters_are_committed_with_the_checkpoint(flights, tmp_path):
    """Killed again and again: each letter is there once."""
    script = ddl(flights, ", on_error='dead_letter', dead_letter_table='dead', rate_limit='150000'") + (
        "CREATE TABLE out (carrier VARCHAR, dep_time BIGINT) WITH (connector='file', format='json', path='out');\n"
        "INSERT INTO out SELECT carrier, dep_time FROM flights;\n")
    (tmp_path / "job.sql").write_text(script)
    args = [CLINK, "run", "--checkpoint-dir", "ck", "--checkpoint-interval-ms", "50", "-p", "2", "job.sql"]
    for kills in range(40):
        p = subprocess.Popen(args, cwd=tmp_path, stderr=subprocess.PIPE)
        seen = len(list((tmp_path / "ck").glob("**/*.json"))) if (tmp_path / "ck").exists() else 0
        deadline = time.monotonic() + 60
        while p.poll() is None and kills < 3:
            now = len(list((tmp_path / "ck").glob("**/*.json"))) if (tmp_path / "ck").exists() else 0
            if now > seen or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        if p.poll() is None and kills < 3:
            p.send_signal(signal.SIGKILL)
        err = p.communicate(timeout=100)[1]
        if p.returncode == 0:
            break
        assert p.returncode == -signal.SIGKILL, err
    got, _ = letters(tmp_path)
    assert got == bad_lines(flights)
    assert sum(len(x.read_text().splitlines()) for x in (tmp_path / "out").iterdir()) == GOOD


def test_repaired_letters_are_fed_back(clink, flights, tmp_path):
    out = ("CREATE TABLE out (carrier VARCHAR, dep_time BIGINT) WITH (connector='file', format='json', path='out');\n"
           "CREATE TABLE other (x BIGINT) WITH (connector='file', format='json', path='other');\n"
           "INSERT INTO other SELECT x FROM UNNEST(ARRAY[1, 2]) AS t (x);\n"
           "INSERT INTO out SELECT carrier, dep_time FROM flights;\n")
    (tmp_path / "job.sql").write_text(ddl(flights, ", on_error='dead_letter', dead_letter_table='dead'") + out)
    clink("run", "job.sql")
    assert sum(len(x.read_text().splitlines()) for x in (tmp_path / "out").iterdir()) == GOOD

    # as they are they still do not fit: nothing is fed
    r = clink("dead-letter-replay", "flights", "--script", "job.sql", ok=False)
    assert r.code == 1 and '"NA" is not a BIGINT' in r.err and "--export FILE writes them all" in r.err and "on_error" not in r.err
    assert sum(len(x.read_text().splitlines()) for x in (tmp_path / "out").iterdir()) == GOOD

    # repaired by hand
    r = clink("dead-letter-replay", "flights", "--script", "job.sql", "--export", "bad.csv")
    assert r.err.endswith(f"clink: {BAD} records of flights written to bad.csv\n")
    lines = (tmp_path / "bad.csv").read_bytes().splitlines()
    assert lines[1:] == [line for _, line in bad_lines(flights)]
    fixed = [lines[0]] + [b",".join(f[:3] + [b"0"] + f[4:]) for f in (line.split(b",") for line in lines[1:])]
    (tmp_path / "fixed.csv").write_bytes(b"\n".join(fixed) + b"\n")
    r = clink("dead-letter-replay", "flights", "--script", "job.sql", "--from", "fixed.csv")
    assert f"{BAD} records were fed back" in r.err
    rows = [json.loads(line) for x in (tmp_path / "out").iterdir() for line in x.read_text().splitlines()]
    assert len(rows) == BAD + GOOD and sum(r["dep_time"] == 0 for r in rows) == BAD
    assert sum(len(x.read_text().splitlines()) for x in (tmp_path / "other").iterdir()) == 2  # what does not read the table does not run again

    # a repaired definition, letters as they are
    (tmp_path / "repaired.sql").write_text(
        ddl(flights, ", null_string='NA', on_error='dead_letter', dead_letter_table='dead'", dep_time="BIGINT") + "SELECT COUNT(*) AS n, COUNT(dep_time) AS t FROM flights")
    assert clink("dead-letter-replay", "flights", "--script", "repaired.sql").rows == [{"n": BAD, "t": 0}]
    # once: they are kept, out of the table's way
    assert len([x for x in (tmp_path / "dead" / "replayed").iterdir() if x.name.startswith("part-")]) >= 1
    r = clink("dead-letter-replay", "flights", "--script", "repaired.sql")
    assert r.out == "" and "dead has no letters" in r.err


@pytest.mark.parametrize("options,says", [
    ("on_error='dead_letter'", "needs the option 'dead_letter_table'"),
    ("dead_letter_table='dead'", "is for on_error = 'dead_letter'"),
    ("on_error='ignore'", "on_error"),
    ("on_error='dead_letter', dead_letter_table='nobody'", "is no table; create it first"),
    ("on_error='dead_letter', dead_letter_table='small'", "must have the columns (raw BYTES"),
])
def test_what_cannot_take_letters_is_refused(clink, tmp_path, options, says):
    (tmp_path / "t.ndjson").write_text('{"x":1}\n')
    r = clink("run", "-e", "CREATE TABLE dead (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='blackhole');"
              "CREATE TABLE small (raw BYTES) WITH (connector='blackhole');"
              f"CREATE TABLE t (x BIGINT) WITH (connector='file', path='t.ndjson', {options}); SELECT x FROM t", ok=False)
    assert r.code == 1 and says in r.err


@pytest.mark.parametrize("p", [1, 3])
def test_limit_stops_a_source_with_letters(clink, tmp_path, p):
    """Dead letters alone keep nothing going: LIMIT over a followed file ends."""
    with open(tmp_path / "t.ndjson", "w") as f:
        f.writelines('{"x":"no"}\n' if i == 10 else '{"x":%d}\n' % i for i in range(50000))
    r = clink("run", "-p", p, "-e", "CREATE TABLE dead (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='dead');"
              "CREATE TABLE t (x BIGINT) WITH (connector='file', path='t.ndjson', follow='true', on_error='dead_letter', dead_letter_table='dead');"
              "SELECT x FROM t WHERE x > 20 LIMIT 3")
    assert len(r.rows) == 3
    assert [raw for _, raw in letters(tmp_path)[0]] == [b'{"x":"no"}']


def test_json_letters(clink, tmp_path):
    lines = [b'{"x":1}', b'{"x":"no"}', b"not json at all", b'{"x":2}', b'{"x":3', b'{"x":"\xff"}']
    (tmp_path / "t.ndjson").write_bytes(b"\n".join(lines) + b"\n")
    r = clink("run", "-e", "CREATE TABLE dead (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='dead');"
              "CREATE TABLE t (x BIGINT) WITH (connector='file', path='t.ndjson', on_error='dead_letter', dead_letter_table='dead'); SELECT x FROM t")
    assert r.rows == [{"x": 1}, {"x": 2}]
    got, _ = letters(tmp_path)
    assert [raw for _, raw in got] == [lines[1], lines[2], lines[4], lines[5]]
