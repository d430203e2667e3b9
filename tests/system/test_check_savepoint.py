"""clink check-savepoint: what a savepoint holds and whether a job could go on from it; exit codes 0, 1, 2, 3. Files of other writers are
made here with pyarrow, from docs/formats.md alone: no versions, versions that are none, versions of the future."""
import json
import os

import pyarrow as pa
import pyarrow.ipc
import pytest

from conftest import run_clink
from test_evolve import COPY, DDL, SUM, Job, job  # noqa: F401
from test_snapshot_format import fnv1a

UID = "group_agg(k)<-src"
OP = fnv1a(b"uid/" + UID.encode())


def check(*args):
    r = run_clink("check-savepoint", *args, ok=False)
    return r.code, r.out, r.err


def snap(path, metadata, slots=("buf", "buf2"), rows=3):
    """A snapshot as another engine writes it: three columns, 128 key groups."""
    keys = [bytes([fnv1a(b"k%d" % i) % 128]) + s.encode() + b"|k%d" % i for s in slots for i in range(rows)]
    schema = pa.schema([pa.field("op_id", pa.uint64(), False), pa.field("key_bytes", pa.binary(), False),
                        pa.field("value_bytes", pa.binary(), False)], metadata=metadata)
    with pa.OSFile(str(path), "wb") as f, pa.ipc.new_stream(f, schema) as w:
        w.write_batch(pa.record_batch([pa.array([OP] * len(keys), pa.uint64()), pa.array(keys, pa.binary()),
                                       pa.array([b"value"] * len(keys), pa.binary())], schema=schema))
    return path


def test_a_savepoint_and_the_jobs_that_go_on_from_it(job):
    code, out, err = check(job.ck)
    assert code == 0 and "job job in" in out and UID in out and 'slot "agg": 7 entries' in out, (out, err)
    code, out, err = check(job.ck, "--expected", job.script(SUM + COPY))
    assert code == 0 and "compatible with" in out, (out, err)
    code, out, err = check(job.ck, "--expected", job.script(SUM.replace("v > 2", "v > 3") + COPY), "--json")
    said = json.loads(out)
    assert code == 3 and said["compatible"] is False and said["incompatible"][0]["uid"] == UID, (out, err)
    assert said["entries"] == sum(o["entries"] for o in said["operators"])
    code, out, err = check(job.ck, "--expected", job.script(COPY))  # its state would be given up
    assert code == 3 and "is not in this job" in out, (out, err)


def test_one_checkpoint_a_manifest_and_one_file(job):
    newest = max(int(n[11:-5]) for n in os.listdir(job.ck) if n.startswith("checkpoint-") and n.endswith(".json"))
    whole = check(job.ck)[1]
    assert check("%s:%d" % (job.ck, newest))[1] == whole
    assert check(job.ck / ("checkpoint-%d.json" % newest))[1] == whole
    manifest = json.loads((job.ck / ("checkpoint-%d.json" % newest)).read_text())
    total = 0
    for f in manifest["files"]:
        code, out, err = check(job.ck / f["path"], "--json")
        assert code == 0, err
        total += json.loads(out)["entries"]
    assert total == json.loads(check(job.ck, "--json")[1])["entries"]
    state = [f["path"] for f in manifest["files"] if str(OP) in map(str, f["ops"])]
    assert check(job.ck / state[0], "--expected", job.script(SUM + COPY))[0] == 0
    wider = SUM.replace("SUM(v)", "MAX(note)").replace("out1", "notes")
    ddl = "CREATE TABLE notes (k VARCHAR, a VARCHAR) WITH (connector='blackhole');\n"
    code, out, err = check(job.ck / state[0], "--expected", job.script(ddl + wider))
    assert code == 3 and UID in out and "max" in out.lower(), (out, err)


def test_what_cannot_be_read_is_one_and_what_is_no_job_is_two(job, tmp_path):
    assert check(tmp_path / "nothing")[0] == 1
    empty = tmp_path / "empty"
    empty.mkdir()
    assert check(empty)[0] == 1
    assert check(str(job.ck) + ":999")[0] == 1
    torn = tmp_path / "torn.snap"
    torn.write_bytes(snap(tmp_path / "whole.snap", {}).read_bytes()[:-20])
    code, out, err = check(torn)
    assert code == 1 and "torn.snap" in err and out == ""
    bad = tmp_path / "bad.sql"
    bad.write_text("SELEKT 1;")
    for expected in (bad, tmp_path / "none.sql", tmp_path / "none.so"):
        code, out, err = check(job.ck, "--expected", expected)
        assert code == 2 and expected.name in err and out == "", err
    graph = tmp_path / "graph.json"
    graph.write_text("{}")
    assert check(job.ck, "--expected", graph)[0] == 2
    assert check()[0] == 2
    assert check(job.ck, "--expect")[0] == 2
    for path in job.ck.rglob("*.snap"):
        b = bytearray(path.read_bytes())
        b[len(b) // 2] ^= 1
        path.write_bytes(b)
    code, out, err = check(job.ck)
    assert code == 1 and ".snap" in err, err


def test_a_graph_is_a_job(job, tmp_path):
    newest = max(int(n[11:-5]) for n in os.listdir(job.ck) if n.startswith("checkpoint-") and n.endswith(".json"))
    graph = json.loads((job.ck / ("checkpoint-%d.json" % newest)).read_text())["graph"]
    path = tmp_path / "graph.json"
    path.write_text(graph if isinstance(graph, str) else json.dumps(graph))
    code, out, err = check(job.ck, "--expected", path)
    assert code == 0 and "compatible with" in out, (out, err)


def versions(text):
    return {"clink.state_versions": text}


@pytest.mark.parametrize("metadata,want", [
    ({}, {"buf": (1, False), "buf2": (1, False)}),
    (versions("%d|buffer|3|buf" % OP), {"buf": (3, True), "buf2": (1, False)}),
    (versions("%d|buffer|1|buf\n%d|buffer|4294967295|buf2" % (OP, OP)), {"buf": (1, True), "buf2": (4294967295, True)}),
], ids=["none", "one", "two"])
def test_versions_of_another_writer(tmp_path, metadata, want):
    code, out, err = check(snap(tmp_path / "a.snap", metadata), "--json")
    assert code == 0, err
    slots = {s["slot"]: (s["version"], s["stamped"]) for s in json.loads(out)["operators"][0]["slots"]}
    assert slots == want


@pytest.mark.parametrize("text", ["%d|buffer|1.0|buf", "%d|buffer| 1|buf", "%d|buffer|0|buf", "%d|buffer|4294967296|buf", "%d|buffer",
                                  "%d|buffer|1|buf\n", "%d|buffer|-1|buf", "%d|buffer|1|", "x%d|buffer|1|buf"])
def test_versions_that_are_none_are_damage(tmp_path, text):
    code, out, err = check(snap(tmp_path / "a.snap", versions(text % OP)))
    assert code == 1 and "clink.state_versions: line" in err and "a.snap" in err, err


@pytest.mark.parametrize("key,value", [("clink.format_version", v) for v in ("1.0", " 1", "0", "3", "")] +
                         [("clink.key_groups", v) for v in ("0", "1.0", "99999999")])
def test_formats_that_are_none_are_refused(tmp_path, key, value):
    code, out, err = check(snap(tmp_path / "a.snap", {key: value}))
    assert code == 1 and key.split(".")[1].replace("_", " ")[:6] in err.replace("_", " "), err


def described(version=None, fields=(("sum(v)", "BIGINT", True),)):
    s = {"op_id": str(OP), "uid": UID, "op_type": "group_agg", "slot": "agg", "state_type": "group_agg", "mode": "keyed",
         "partition": [{"name": "k", "type": "VARCHAR", "nullable": True}], "order": [],
         "values": [{"name": n, "type": t, "nullable": b} for n, t, b in fields], "ttl": 0}
    if version is not None:
        s["version"] = version
    return {"clink.slots": json.dumps([s])}


def test_a_slot_without_a_version_is_held_against_the_job(tmp_path):
    """It describes itself: the fields are compared, whoever wrote it."""
    script = Job(tmp_path).script(SUM + COPY)
    want = json.loads(check_slot(tmp_path, script))
    ok = described(fields=want)
    assert check(snap(tmp_path / "a.snap", ok, ["agg"], 0), "--expected", script)[0] == 0
    narrow = described(fields=[(n, "VARCHAR" if i == 0 else t, b) for i, (n, t, b) in enumerate(want)])
    code, out, err = check(snap(tmp_path / "b.snap", narrow, ["agg"], 0), "--expected", script)
    assert code == 3 and "is stored as VARCHAR" in out and want[0][0] in out and UID in out, (out, err)


def test_a_version_of_the_future_is_refused(tmp_path):
    script = Job(tmp_path).script(SUM + COPY)
    want = json.loads(check_slot(tmp_path, script))
    for metadata in (described(2, want), {**described(None, want), **versions("%d|group_agg|2|agg" % OP)}):
        code, out, err = check(snap(tmp_path / "a.snap", metadata, ["agg"], 0), "--expected", script)
        assert code == 3 and 'type "group_agg": v2 -> v1' in out and "this job knows up to 1" in out, (out, err)


@pytest.mark.parametrize("version", [0, -1, 1.0, " 1", "1", 4294967296])
def test_slot_versions_that_are_none_are_damage(tmp_path, version):
    code, out, err = check(snap(tmp_path / "a.snap", described(version), ["agg"], 0))
    assert code == 1 and "version" in err, err


def test_two_versions_of_one_slot_are_damage(tmp_path):
    code, out, err = check(snap(tmp_path / "a.snap", {**described(1), **versions("%d|group_agg|2|agg" % OP)}, ["agg"], 0))
    assert code == 1 and "version 1" in err and "2" in err, err


def check_slot(tmp_path, script):
    """The fields this build stores for the job's aggregate, from a savepoint of it."""
    j = Job(tmp_path / "made") if (tmp_path / "made").exists() or not (tmp_path / "made").mkdir() else None
    code, err = j.life(SUM + COPY)
    assert code == 0, err
    for path in j.ck.rglob("*.snap"):
        with pa.OSFile(str(path), "rb") as f, pa.ipc.open_stream(f) as r:
            for s in json.loads(r.schema.metadata.get(b"clink.slots", b"[]")):
                if s["uid"] == UID and s["slot"] == "agg":
                    return json.dumps([(v["name"], v["type"], v["nullable"]) for v in s["values"]])
    raise AssertionError("no slot agg")
