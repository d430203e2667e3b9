"""Snapshots that a real run has written, read with pyarrow and what docs/formats.md says, nothing else: columns, metadata, every row
of every slot, a base and the deltas on it. The state is a consistent cut: it is what the input gives up to where the splits stand."""
import json
import os
import signal
import struct

import pyarrow as pa
import pytest
from conftest import run_clink
from test_snapshot_format import crc32c, fnv1a, metadata, read, split_key

ROWS, EARLY = 6000, 900
SCRIPT = """CREATE TABLE src (i BIGINT NOT NULL, k VARCHAR, g BIGINT, v BIGINT, at TIMESTAMP(6))
  WITH (connector='file', format='json', path='{dir}/in/*.json', rate_limit='{rate}');
CREATE TABLE totals (k VARCHAR, n BIGINT, s BIGINT, d BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH (connector='file', format='csv', path='{dir}/totals', mode='upsert');
CREATE TABLE pairs (k VARCHAR, g BIGINT, m DECIMAL(12,2), PRIMARY KEY (k, g) NOT ENFORCED)
  WITH (connector='file', format='csv', path='{dir}/pairs', mode='upsert');
CREATE TABLE copy (i BIGINT, k VARCHAR) WITH (connector='file', format='json', path='{dir}/copy');
INSERT INTO totals SELECT k, COUNT(*) AS n, SUM(v) AS s, COUNT(DISTINCT v) AS d FROM src GROUP BY k;
INSERT INTO pairs SELECT k, g, MAX(CAST(v AS DECIMAL(12,2))) AS m FROM src GROUP BY k, g;
INSERT INTO copy SELECT i, k FROM src WHERE v > 2;
"""
WIDTHS = {"BIGINT": 8, "INTEGER": 8, "DOUBLE": 8, "TIMESTAMP(6)": 8, "BOOLEAN": 1}


def width(kind):
    return 16 if kind.startswith("DECIMAL") else WIDTHS.get(kind, 0)


def scalar(raw, kind):
    if kind == "VARCHAR":
        return raw.decode()
    if kind == "DOUBLE":
        return struct.unpack("<d", raw)[0]
    return int.from_bytes(raw, "little", signed=True)


def user_key(data, fields):
    if not fields:
        assert data == b""
        return ()
    if len(fields) == 1:
        f = fields[0]
        if f["nullable"] and data == b"\xff":
            return (None,)
        return (scalar(data, f["type"]),)
    out = []
    for f in fields:
        present, data = data[0], data[1:]
        if not present:
            out.append(None)
            continue
        n = 8
        if f["type"] == "VARCHAR":
            n, data = struct.unpack("<I", data[:4])[0], data[4:]
        out.append(scalar(data[:n], f["type"]))
        data = data[n:]
    assert not data
    return tuple(out)


def packed(data, fields):
    nulls = 0
    if any(f["nullable"] for f in fields):
        n = (len(fields) + 7) // 8
        nulls, data = int.from_bytes(data[:n], "little"), data[n:]
    out = [None] * len(fields)
    for i, f in enumerate(fields):
        n = width(f["type"])
        if n and not nulls >> i & 1:
            out[i] = scalar(data[:n], f["type"])
        data = data[n:]
    for i, f in enumerate(fields):
        if not width(f["type"]) and not nulls >> i & 1:
            n = struct.unpack("<I", data[:4])[0]
            out[i], data = data[4:4 + n].decode(), data[4 + n:]
    assert not data
    return tuple(out)


def write_input(where):
    """Many keys early, few later: so that checkpoints write deltas."""
    where.mkdir()
    rows = []
    for i in range(ROWS):
        k = f"early customer {i % 300}" if i < EARLY else f"late {i % 3}"
        rows.append({"i": i, "k": k if i % 50 else None, "g": i % 4 if i % 9 else None, "v": i % 11,
                     "at": "2024-01-01 00:%02d:%02d" % (i // 100 % 60, i % 60)})
    for part in range(2):
        (where / f"{part}.json").write_text("".join(json.dumps(r) + "\n" for r in rows[part::2]))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A directory whose newest checkpoint has a delta. How many rows lie between two checkpoints depends on the machine."""
    for rate in (4000, 1000, 250):
        d = tmp_path_factory.mktemp("run")
        write_input(d / "in")
        (d / "job.sql").write_text(SCRIPT.format(dir=d, rate=rate))
        r = run_clink("run", d / "job.sql", "--checkpoint-dir", d / "ck", "--checkpoint-interval-ms", 20, "--checkpoint-retained", 1000,
                      "-p", 2, env={"CLINK_FAULT": "checkpoint.after_manifest:14:kill"}, ok=False)
        assert r.code in (0, -signal.SIGKILL), r.err
        manifests = [json.load(open(p)) for p in sorted((d / "ck").glob("checkpoint-*.json"), key=lambda p: int(p.stem.split("-")[1]))]
        with_delta = [m for m in manifests if m["kind"] == "periodic" and sum(f["kind"] == "delta" for f in m["files"]) >= 2]
        if with_delta:
            return d, with_delta[-1]
    pytest.fail("no checkpoint has written a delta")


def files_of(run):
    d, manifest = run
    for f in manifest["files"]:
        yield f, *read(os.path.join(d, "ck", f["path"]))


def test_columns_and_metadata(run):
    d, manifest = run
    kinds = set()
    for f, schema, rows in files_of(run):
        delta = f["kind"] == "delta"
        kinds.add(f["kind"])
        fields = [pa.field("op_id", pa.uint64(), False), pa.field("key_bytes", pa.binary(), False),
                  pa.field("value_bytes", pa.binary(), False)]
        assert schema.remove_metadata() == pa.schema([pa.field("row_kind", pa.uint8(), False)] * delta + fields)
        md = metadata(schema)
        assert md["clink.format_version"] == "1" and md["clink.key_groups"] == "128" and md["clink.engine"].startswith("clink ")
        number = int(f["path"].split("-")[-1].split(".")[0])
        assert int(md["clink.checkpoint_id"]) == number <= manifest["checkpoint"]
        assert md.get("clink.parent") == f.get("base") and delta == ("clink.parent" in md)
        slots = json.loads(md["clink.slots"])
        lines = sorted(f"{s['op_id']}|{s['state_type']}|{s['version']}|{s['slot']}" for s in slots)
        assert md["clink.state_versions"].split("\n") == lines
        for s in slots:
            assert int(s["op_id"]) == fnv1a(b"uid/" + s["uid"].encode()) and s["op_type"] and s["ttl"] == 0
            assert s["mode"] in ("keyed", "broadcast", "union", "split")
            for column in s["partition"] + s["order"] + s["values"]:
                assert column["name"] and column["type"] and column["nullable"] in (True, False)
        assert {r["op_id"] for r in rows} <= {int(s["op_id"]) for s in slots}
        assert sorted(f["ops"]) == sorted({s["op_id"] for s in slots})
        data = open(os.path.join(d, "ck", f["path"]), "rb").read()
        assert len(data) == f["bytes"] and crc32c(data) == f["crc32c"]
    assert kinds == {"base", "delta"}


def replay(run):
    """(uid, slot) -> key -> value, bases and deltas in the order of the manifest; for each, its slot."""
    state, slots, chain = {}, {}, {}
    for f, schema, rows in files_of(run):
        own = {(int(s["op_id"]), s["slot"]): s for s in json.loads(metadata(schema)["clink.slots"])}
        slots.update({(s["uid"], s["slot"]): s for s in own.values()})
        subtask = (f["vertex"], f["subtask"])
        assert f.get("base") == (chain.get(subtask) if f["kind"] == "delta" else None), "deltas stand on the file before them"
        chain[subtask] = f["path"]
        for r in rows:
            group, slot, rest, keyed = split_key(r["key_bytes"])
            s = own[r["op_id"], slot]
            assert keyed == (s["mode"] == "keyed")
            user, order = rest, ()
            if keyed and s["order"]:
                n = struct.unpack(">I", rest[:4])[0]
                user, order = rest[4:4 + n], (rest[4 + n:],)
            if keyed:
                assert group == fnv1a(user) % 128 and f["key_groups"][0] <= group <= f["key_groups"][1]
            key = user_key(user, s["partition"]) + order
            rows_of = state.setdefault((s["uid"], slot), {})
            where = key if keyed else (f["subtask"],) + key
            if r.get("row_kind") == 2:
                assert r["value_bytes"] == b"" and rows_of.pop(where, None) is not None, "an erase of nothing"
            else:
                rows_of[where] = packed(r["value_bytes"], s["values"])
    return state, slots


def test_state_is_what_the_input_gives(run):
    d, manifest = run
    state, slots = replay(run)
    assert {s["mode"] for s in slots.values()} >= {"keyed", "split"}
    splits = {}
    for (subtask, name), (order, position) in state["source:src", "clink.splits"].items():
        splits[name] = json.loads(position)
    seen = []
    for path in map(str, (d / "in").iterdir()):
        end = max(p["position"] for name, p in splits.items() if name.startswith(path))
        data = open(path, "rb").read()[:end]
        assert not data or data.endswith(b"\n"), "a position is a record's end"
        seen += [json.loads(line) for line in data.splitlines()]
    assert 0 < len(seen) <= ROWS
    totals, pairs, values = {}, {}, {}
    for r in seen:
        n, s = totals.get((r["k"],), (0, 0))
        totals[r["k"],] = (n + 1, s + r["v"])
        values.setdefault((r["k"],), set()).add(r["v"])
        pairs[r["k"], r["g"]] = max(pairs.get((r["k"], r["g"]), 0), r["v"])
    (uid,) = [u for u, s in slots if s == "agg" and "(k)" in u]
    names = [f["name"] for f in slots[uid, "agg"]["values"]]
    assert names[0] == "count(*)" and names[1] == "sum(v)"
    assert {k: v[:2] for k, v in state[uid, "agg"].items()} == totals
    assert {k: v[2] for k, v in state[uid, "agg"].items()} == {k: len(v) for k, v in values.items()}
    (uid,) = [u for u, s in slots if s == "agg" and "(k)" not in u]
    assert {k: v[0] for k, v in state[uid, "agg"].items()} == {k: v * 100 for k, v in pairs.items()}
    staged = [json.loads(v[1]) for (u, s), rows in state.items() if s == "clink.commit" for v in rows.values()]
    assert staged and all(set(c) >= {"staged", "bytes", "crc32c"} for c in staged)
