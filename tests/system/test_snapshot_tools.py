"""State of a real job in other tools: pyarrow, polars and DuckDB read its snapshots, and what pyarrow writes is restored."""
import json
import signal

import duckdb
import polars
import pyarrow as pa
import pyarrow.ipc
import pytest
from test_savepoints import Run, manifests
from test_snapshot_format import fnv1a

GROUP_BYTES = {16: 1, 128: 1, 129: 2, 1024: 2}


def crc32c(data):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    crc = 0xFFFFFFFF
    for b in data:
        crc = crc >> 8 ^ table[(crc ^ b) & 255]
    return crc ^ 0xFFFFFFFF


def read(path):
    with pa.OSFile(str(path), "rb") as f, pa.ipc.open_stream(f) as r:
        return r.read_all()


def stopped(tmp_path, groups, p=2):
    ck = tmp_path / "ck"
    run = Run(tmp_path, "--checkpoint-dir", ck, "--key-groups", groups, "-p", p)
    try:
        run.until_read()
        run.until_counted()
        run.end(signal.SIGUSR2, 0)
    finally:
        run.proc.kill()
    ids = manifests(ck)
    return run, ck, ids[max(ids)]


@pytest.mark.parametrize("groups", sorted(GROUP_BYTES))
def test_other_tools_read_it(tmp_path, groups):
    _, ck, m = stopped(tmp_path, groups)
    width, found = GROUP_BYTES[groups], {}
    for f in m["files"]:
        table = read(ck / f["path"])
        meta = {k.decode(): v.decode() for k, v in table.schema.metadata.items()}
        assert meta["clink.key_groups"] == str(groups)
        assert meta.get("clink.format_version", "1") == ("1" if groups == 128 else "2")
        assert table.schema.names == ["op_id", "key_bytes", "value_bytes"]
        with open(ck / f["path"], "rb") as stream:
            frame = polars.read_ipc_stream(stream)
        assert frame.rows() == [tuple(r.values()) for r in table.to_pylist()]
        state = duckdb.from_arrow(table)
        assert state.aggregate("count(*), count(DISTINCT key_bytes)").fetchall()[0] == (
            table.num_rows, len(set(table["key_bytes"].to_pylist())))
        for row in table.to_pylist():
            group, slot, _, key = (int.from_bytes(row["key_bytes"][:width], "big"), *row["key_bytes"][width:].partition(b"|"))
            if group < groups and slot == b"agg":
                assert group == fnv1a(key) % groups and f["key_groups"][0] <= group <= f["key_groups"][1]
                found[key.decode()] = row["value_bytes"]
    assert sorted(found) == [f"k{i}" for i in range(7)]


@pytest.mark.parametrize("groups", (128, 1024))
def test_what_another_tool_wrote_is_restored(tmp_path, groups):
    """Format 1 (128 groups) and 2: rows in another order and other batches, keys of metadata nobody knows."""
    _, ck, m = stopped(tmp_path, groups)
    for f in m["files"]:
        table = read(ck / f["path"])
        table = table.take(pa.array(reversed(range(table.num_rows)), pa.int64()))
        table = table.replace_schema_metadata({**table.schema.metadata, b"written.by": b"someone else"})
        with pa.OSFile(str(ck / f["path"]), "wb") as out, pa.ipc.new_stream(out, table.schema) as w:
            w.write_table(table, max_chunksize=3)
        data = (ck / f["path"]).read_bytes()
        f["bytes"], f["crc32c"] = len(data), crc32c(data)
    m.pop("crc32c")  # as manifests of older versions are: whoever rewrites one cannot keep it
    (ck / f"checkpoint-{m['checkpoint']}.json").write_text(json.dumps(m))
    again = Run(tmp_path, "--checkpoint-dir", ck, "--key-groups", groups, "-p", 3)
    try:
        again.append(80)
        again.until_counted()
        again.until_read()
        again.end()
    finally:
        again.proc.kill()
    again.check()


def test_a_range_of_keys_is_erased(tmp_path):
    """A delta of another tool: one row that erases all keys of the aggregate, then puts; what stood in between is gone."""
    _, ck, m = stopped(tmp_path, 128, 1)
    (f,) = (f for f in m["files"] if any(b"agg|" in k for k in read(ck / f["path"])["key_bytes"].to_pylist()))
    table = read(ck / f["path"])
    rows = [r for r in table.to_pylist() if b"agg|" in r["key_bytes"]]
    junk = [{**rows[0], "key_bytes": bytes([fnv1a(k) % 128]) + b"agg|" + k} for k in (b"not", b"there")]

    def write(path, rows, fields, **meta):
        schema = pa.schema(fields, metadata={**table.schema.metadata, **{f"clink.{k}".encode(): v.encode() for k, v in meta.items()}})
        with pa.OSFile(str(ck / path), "wb") as out, pa.ipc.new_stream(out, schema) as w:
            w.write_table(pa.Table.from_pylist(rows, schema=schema))
        data = (ck / path).read_bytes()
        return {**f, "path": path, "bytes": len(data), "crc32c": crc32c(data)}

    changed = [{**r, "value_bytes": bytes(len(r["value_bytes"]))} if r in rows else r for r in table.to_pylist()]
    base = write(f["path"], changed + junk, list(table.schema))
    delta_path = f["path"].replace("checkpoint-", "delta-")
    erase = {"row_kind": 4, "op_id": rows[0]["op_id"], "key_bytes": b"\0", "value_bytes": b"\x80"}
    delta = write(delta_path, [erase] + [{"row_kind": 1, **r} for r in rows],
                  [pa.field("row_kind", pa.uint8(), False), *table.schema], parent=f["path"])
    at = m["files"].index(f)
    m["files"][at:at + 1] = [base, {**delta, "kind": "delta", "base": f["path"]}]
    m.pop("crc32c")
    (ck / f"checkpoint-{m['checkpoint']}.json").write_text(json.dumps(m))
    again = Run(tmp_path, "--checkpoint-dir", ck, "-p", 3)
    try:
        again.append(80)
        again.until_counted()
        again.until_read()
        again.end(signal.SIGUSR2, 0)
    finally:
        again.proc.kill()
    again.check()
    ids = manifests(ck)
    kept = [k.partition(b"|")[2] for f in ids[max(ids)]["files"] for k in read(ck / f["path"])["key_bytes"].to_pylist() if k[1:5] == b"agg|"]
    assert sorted(kept) == [b"k%d" % i for i in range(7)]
