"""Snapshots, deltas, changelog files and manifests as tools in other languages see them (docs/formats.md): written by the unit test program
test.checkpoint.golden, read here with pyarrow and a decoder written from the format's page alone."""
import json
import os
import struct
import subprocess

import pyarrow as pa
import pyarrow.ipc
import pytest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("CLINK_BUILD", os.path.join(TOP, "build"))
GOLDEN = os.path.join(TOP, "tests", "golden", "state")
UID = "agg(usr)<-orders"


def fnv1a(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


OP_ID = fnv1a(b"uid/" + UID.encode())


@pytest.fixture(scope="module", params=["golden", "written now"])
def directory(request, tmp_path_factory):
    if request.param == "golden":
        return GOLDEN
    d = str(tmp_path_factory.mktemp("snapshots"))
    subprocess.run([os.path.join(BUILD, "tests", "test.checkpoint.golden"), "--write", d], check=True)
    return d


@pytest.fixture(scope="module", params=["golden", "written now"])
def changelogs(request, tmp_path_factory):
    """The same content as changelog files: all rows inside, and in a materialisation beside them."""
    if request.param == "golden":
        return {k: os.path.join(TOP, "tests", "golden", "changelog_" + k) for k in ("inside", "external")}
    d = {k: str(tmp_path_factory.mktemp(k)) for k in ("inside", "external")}
    for k in d:
        subprocess.run([os.path.join(BUILD, "tests", "test.checkpoint.golden"), "--write", d[k], k], check=True)
    return d


def read(path):
    with pa.OSFile(path, "rb") as f, pa.ipc.open_stream(f) as r:
        return r.schema, r.read_all().to_pylist()


def split_key(key):
    """-> (key group, slot, rest, keyed)"""
    group, tail = key[0], key[1:]
    keyed = group != 0xFF
    slot, mark, rest = tail.partition(b"|" if keyed else b"\n")
    assert mark or not keyed
    return group, slot.decode(), rest, keyed


def split_ordered(rest):
    (n,) = struct.unpack(">I", rest[:4])
    return rest[4:4 + n], rest[4 + n:]


def key_parts(data, kinds):
    """A user key of several columns."""
    out = []
    for kind in kinds:
        present, data = data[0], data[1:]
        if not present:
            out.append(None)
        elif kind == "i64":
            out.append(struct.unpack("<q", data[:8])[0])
            data = data[8:]
        elif kind == "decimal":
            out.append((int.from_bytes(data[1:17], "little", signed=True), data[0]))
            data = data[17:]
    assert not data
    return tuple(out)


def value(data, kinds, nullable):
    """A packed value: null bits, fixed part, variable part."""
    nulls = 0
    if any(nullable):
        n = (len(kinds) + 7) // 8
        nulls, data = int.from_bytes(data[:n], "little"), data[n:]
    out = [None] * len(kinds)
    for i, kind in enumerate(kinds):
        width = {"i64": 8, "decimal": 16, "text": 0}[kind]
        raw, data = data[:width], data[width:]
        if width and not nulls >> i & 1:
            out[i] = int.from_bytes(raw, "little", signed=True)
    for i, kind in enumerate(kinds):
        if kind == "text" and not nulls >> i & 1:
            (n,) = struct.unpack("<I", data[:4])
            out[i], data = data[4:4 + n].decode(), data[4 + n:]
    assert not data
    return tuple(out)


def metadata(schema):
    return {k.decode(): v.decode() for k, v in schema.metadata.items()}


def test_columns_and_metadata(directory):
    schema, rows = read(os.path.join(directory, "1/0/checkpoint-7.snap"))
    assert schema.remove_metadata() == pa.schema([pa.field("op_id", pa.uint64(), False),
                                                  pa.field("key_bytes", pa.binary(), False),
                                                  pa.field("value_bytes", pa.binary(), False)])
    md = metadata(schema)
    assert md["clink.format_version"] == "1" and md["clink.key_groups"] == "128" and md["clink.checkpoint_id"] == "7"
    assert md["clink.engine"].startswith("clink ")
    lines = md["clink.state_versions"].split("\n")
    assert lines == sorted(lines) and f"{OP_ID}|pairs|3|pairs" in lines and f"{OP_ID}|group_agg|1|agg" in lines
    assert {r["op_id"] for r in rows} == {OP_ID}


def test_slots_describe_the_rows(directory):
    schema, _ = read(os.path.join(directory, "1/0/checkpoint-7.snap"))
    slots = {s["slot"]: s for s in json.loads(metadata(schema)["clink.slots"])}
    assert set(slots) == {"agg", "pairs", "rows", "clink.splits", "clink.commit"}
    agg = slots["agg"]
    assert agg["uid"] == UID and agg["op_id"] == str(OP_ID) and agg["mode"] == "keyed" and agg["op_type"] == "group_agg"
    assert agg["partition"] == [{"name": "usr", "type": "VARCHAR", "nullable": False}]
    assert agg["values"] == [{"name": "sum(amount)", "type": "BIGINT", "nullable": False}]
    assert slots["pairs"]["partition"][1]["type"] == "DECIMAL(12,2)"
    assert slots["rows"]["order"] == [{"name": "ts", "type": "TIMESTAMP(6)", "nullable": True, "desc": True,
                                       "nulls": "last"}]
    assert slots["clink.splits"]["mode"] == "split"


def test_rows(directory):
    _, rows = read(os.path.join(directory, "1/0/checkpoint-7.snap"))
    found = {}
    for r in rows:
        group, slot, rest, keyed = split_key(r["key_bytes"])
        if slot == "rows":
            user, order = split_ordered(rest)
        else:
            user, order = rest, None
        if keyed:
            assert group == fnv1a(user) % 128
        found.setdefault(slot, []).append((user, order, r["value_bytes"]))
    agg = {u.decode(): struct.unpack("<q", v)[0] for u, _, v in found["agg"]}
    assert agg == {"alice": 17, "bob": -7, "": 0, "a-name-longer-than-12": 5}
    kinds, nullable = ("text", "i64", "decimal"), (True, False, True)
    pairs = {key_parts(u, ("i64", "decimal")): value(v, kinds, nullable) for u, _, v in found["pairs"]}
    assert pairs == {(1, (105, 1)): ("a note", 1, 99), (None, (-3, 2)): (None, 2, None)}
    stamp = 1700000000000000
    ordered = {o: value(v, kinds, nullable) for u, o, v in found["rows"] if u == b"alice"}
    assert ordered == {
        b"\x01" + struct.pack(">Q", ~(stamp ^ 1 << 63) & 2**64 - 1): ("late", 3, 100),  # DESC: complemented
        b"\x02": ("never", 4, 200),  # NULLS LAST, never complemented
    }
    (split,) = found["clink.splits"]
    assert split[0] == b"orders.ndjson:0"
    assert value(split[2], ("i64", "text"), (False, False)) == (0, '{"position":1234}')
    (commit,) = found["clink.commit"]
    assert value(commit[2], ("i64", "text"), (False, False)) == (7, '{"bytes":10}')


def test_delta(directory):
    schema, rows = read(os.path.join(directory, "1/0/delta-8.snap"))
    assert schema.names == ["row_kind", "op_id", "key_bytes", "value_bytes"]
    assert schema.field("row_kind").type == pa.uint8()
    assert metadata(schema)["clink.parent"] == "1/0/checkpoint-7.snap"
    puts = {split_key(r["key_bytes"])[2]: struct.unpack("<q", r["value_bytes"])[0] for r in rows if r["row_kind"] == 1}
    erased = [split_key(r["key_bytes"])[1:3] for r in rows if r["row_kind"] == 2]
    assert puts == {b"alice": 18, b"carol": 1}
    assert erased == [("clink.commit", b"out/part-1.ndjson")]


def replay(directory):
    """A checkpoint's rows from its changelog alone: materialisation first, then the segments in order."""
    state = {}
    for f in json.load(open(os.path.join(directory, "checkpoint-8.json")))["files"]:
        _, rows = read(os.path.join(directory, f["path"]))
        for r in rows:
            key = (r["op_id"], r["key_bytes"])
            if r.get("row_kind") == 2:
                del state[key]
            elif r.get("row_kind") != 3:
                state[key] = r["value_bytes"]
    return state


def test_changelogs_replay_to_the_same_rows(changelogs):
    want = replay(GOLDEN)
    assert want and replay(changelogs["inside"]) == want and replay(changelogs["external"]) == want


def test_changelog_files(changelogs):
    schema, rows = read(os.path.join(changelogs["inside"], "1/0/changelog-7.snap"))
    assert schema.names == ["row_kind", "op_id", "key_bytes", "value_bytes"]
    assert "clink.parent" not in metadata(schema) and {r["row_kind"] for r in rows} == {0}
    schema, rows = read(os.path.join(changelogs["inside"], "1/0/changelog-8.snap"))
    assert metadata(schema)["clink.parent"] == "1/0/changelog-7.snap" and {r["row_kind"] for r in rows} == {1, 2}
    schema, rows = read(os.path.join(changelogs["external"], "1/0/changelog-8.snap"))
    assert metadata(schema)["clink.parent"] == "1/0/changelog-7.snap"
    assert rows[0] == {"row_kind": 3, "op_id": 0, "key_bytes": b"", "value_bytes": b"1/0/materialized/7.snap"}
    assert {r["row_kind"] for r in rows[1:]} == {1, 2}
    schema, rows = read(os.path.join(changelogs["external"], "1/0/materialized/7.snap"))
    assert schema.names == ["op_id", "key_bytes", "value_bytes"] and metadata(schema)["clink.parent"] == "1/0/changelog-7.snap"
    m = json.load(open(os.path.join(changelogs["external"], "checkpoint-8.json")))
    assert [(f["kind"], f["base"]) for f in m["files"]] == [("materialized", "1/0/changelog-7.snap"), ("changelog", "1/0/changelog-7.snap")]


def test_manifest_names_what_is_there(directory):
    m = json.load(open(os.path.join(directory, "checkpoint-8.json")))
    assert m["format"] == 1 and m["job"]["name"] == "orders" and m["checkpoint"] == 8 and m["kind"] == "periodic"
    assert m["vertices"] == [{"id": str(OP_ID), "ops": [UID], "parallelism": 2, "finished": [1]}]
    assert m["files"][1]["base"] == m["files"][0]["path"]
    for f in m["files"]:
        data = open(os.path.join(directory, f["path"]), "rb").read()
        assert len(data) == f["bytes"] and crc32c(data) == f["crc32c"]


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF
