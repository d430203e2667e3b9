"""Topics whose records name a schema of a registry: Confluent's own client writes what is read here, and reads what is written."""
import base64
import datetime as dt
import decimal
import importlib
import json
import os
import re
import sys

import grpc_tools
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from conftest import read_rows, run_clink
from grpc_tools import protoc
from registry_server import Registry
from kafka_tables import Job, broker, table, wait_for  # noqa: F401


@pytest.fixture
def registry():
    with Registry() as r:
        yield r


def avro(registry, topic, schema, rows):
    s = AvroSerializer(SchemaRegistryClient({"url": registry.url}), json.dumps(schema))
    return [s(r, SerializationContext(topic, MessageField.VALUE)) for r in rows]


def avro_rows(registry, topic, values):
    d = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    return [d(v, SerializationContext(topic, MessageField.VALUE)) for v in values]


def records(*fields):
    return {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields]}


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


UTC = dt.timezone.utc
EVERYTHING = records(
    ("b", "boolean"), ("i", "int"), ("l", ["null", "long"]), ("f", "float"), ("d", "double"), ("y", "bytes"), ("s", ["null", "string"]),
    ("ignored", {"type": "map", "values": {"type": "array", "items": ["null", "string", "long"]}}),
    ("e", {"type": "enum", "name": "color", "symbols": ["RED", "GREEN"]}), ("x", {"type": "fixed", "name": "four", "size": 4}),
    ("dec", logical("bytes", "decimal", precision=10, scale=2)), ("date", logical("int", "date")), ("t", logical("int", "time-millis")),
    ("ms", logical("long", "timestamp-millis")), ("us", ["null", logical("long", "timestamp-micros")]), ("lo", logical("long", "local-timestamp-micros")),
    ("raw_ms", logical("long", "timestamp-millis")), ("a", {"type": "array", "items": ["null", "long"]}), ("m", {"type": "map", "values": "double"}),
    ("r", ["null", {"type": "record", "name": "inner", "fields": [{"name": "p", "type": "string"}, {"name": "skipped", "type": "double"},
                                                               {"name": "q", "type": {"type": "array", "items": "color"}}]}]))
COLUMNS = """b BOOLEAN, i SMALLINT, l BIGINT, f REAL, d DOUBLE, y BYTES, s VARCHAR, e VARCHAR, x BYTES, "dec" DECIMAL(12,3), "date" DATE, t TIME(3),
    ms TIMESTAMP_LTZ(3), us TIMESTAMP(6), lo TIMESTAMP(6), raw_ms BIGINT, a ARRAY<BIGINT>, m MAP<VARCHAR, DOUBLE>, r ROW<p VARCHAR, q ARRAY<VARCHAR>>"""


def everything(n):
    at = dt.datetime(2024, 2, 29, 12, 30, 15, 123000, UTC) + dt.timedelta(hours=n * 97)
    return {"b": n % 2 == 0, "i": n * 31 - 500, "l": None if n % 3 == 0 else -(1 << 62) + n, "f": n / 4, "d": n / 3, "y": bytes([n % 256, 0, 255]),
            "s": None if n % 5 == 0 else "ä" * n, "ignored": {"k": [None, "v", n], "k2": []}, "e": ["RED", "GREEN"][n % 2], "x": n.to_bytes(4, "big"),
            "dec": decimal.Decimal(n * 7919 - 100000) / 100, "date": at.date(), "t": at.time(), "ms": at,
            "us": None if n % 4 == 0 else at + dt.timedelta(microseconds=456), "lo": at.replace(tzinfo=None), "raw_ms": at,
            "a": [None if k % 3 == 2 else k * n for k in range(n % 6)], "m": {f"k{k}": k / 2 for k in range(n % 3)},
            "r": None if n % 7 == 0 else {"p": f"p{n}", "skipped": 1.5, "q": ["GREEN"] * (n % 3)}}


def iso(t):
    """As clink writes it: no fraction, three digits of it, or six."""
    return t.replace(tzinfo=None).isoformat(timespec="seconds" if not t.microsecond else "microseconds" if t.microsecond % 1000 else "milliseconds")


def shown(r):
    """The row as clink writes it in JSON."""
    b64 = lambda v: base64.b64encode(v).decode()
    return {"b": r["b"], "i": r["i"], "l": r["l"], "f": r["f"], "d": r["d"], "y": b64(r["y"]), "s": r["s"], "e": r["e"], "x": b64(r["x"]),
            "dec": float(r["dec"]), "date": r["date"].isoformat(), "t": r["t"].isoformat(timespec="milliseconds").rstrip("0").rstrip("."),
            "ms": iso(r["ms"]) + "Z", "us": r["us"] and iso(r["us"]), "lo": iso(r["lo"]), "raw_ms": int(r["raw_ms"].timestamp() * 1000),
            "a": r["a"], "m": r["m"], "r": r["r"] and {"p": r["r"]["p"], "q": r["r"]["q"]}}


@pytest.mark.parametrize("p", [1, 2])
def test_avro_of_every_type_is_read(broker, registry, p):  # noqa: F811
    topic, rows = broker.topic(3), [everything(n) for n in range(300)]
    broker.send(topic, avro(registry, topic, EVERYTHING, rows))
    registry.hits.clear()
    sql = table("o", COLUMNS, topic, broker, format="avro", schema_registry=registry.url, bounded="true")
    result = run_clink("run", "-p", p, "-e", sql + "SELECT * FROM o")
    got, want = result.rows, [shown(r) for r in rows]
    assert "NULL" not in result.err, result.err  # nothing is said of columns that no record has
    assert sorted(got, key=lambda r: r["i"]) == want
    assert run_clink("run", "-e", sql + "SELECT SUM(i) AS n, COUNT(r) AS c FROM o").rows == [
        {"n": sum(r["i"] for r in want), "c": sum(r["r"] is not None for r in want)}]
    assert registry.count("/schemas/ids/1") == p + 1, registry.hits


def test_avro_of_every_type_is_written(broker, registry, tmp_path):  # noqa: F811
    topic, copy = broker.topic(1), broker.topic(2)
    rows = [everything(n) for n in range(300)]
    broker.send(topic, avro(registry, topic, EVERYTHING, rows))
    columns = COLUMNS.replace("l BIGINT", "l BIGINT, pk INTEGER NOT NULL METADATA FROM 'partition'")
    sql = (table("o", columns, topic, broker, format="avro", schema_registry=registry.url, bounded="true")
           + table("c", COLUMNS + ", pk INTEGER NOT NULL", copy, broker, format="avro", schema_registry=registry.url, key="i")
           + "INSERT INTO c SELECT b, i, l, f, d, y, s, e, x, \"dec\", \"date\", t, ms, us, lo, raw_ms, a, m, r, pk FROM o;\n")
    run_clink("run", "-e", sql, "--checkpoint-dir", tmp_path / "ck", "--name", "copy")
    assert len(registry.subjects[f"{copy}-value"]) == 1
    read = broker.read(copy, 2, wait=30)
    got = sorted(avro_rows(registry, copy, [v for _, v in read]), key=lambda r: r["i"])
    assert {json.loads(k)["i"] for k, _ in read} == {r["i"] for r in rows}
    want = []
    for r in rows:
        w = {k: v for k, v in r.items() if k != "ignored"}
        w["us"] = w["us"] and w["us"].replace(tzinfo=None)  # TIMESTAMP is without a zone
        w["raw_ms"] = int(w["raw_ms"].timestamp() * 1000)
        w["r"] = w["r"] and {"p": w["r"]["p"], "q": w["r"]["q"]}
        w["pk"] = 0
        want.append(w)
    assert got == want
    # What is written is read again.
    again = table("c", COLUMNS, copy, broker, format="avro", schema_registry=registry.url, bounded="true")
    assert sorted(run_clink("run", "-e", again + "SELECT * FROM c").rows, key=lambda r: r["i"]) == [shown(r) for r in rows]


def test_rows_are_written_by_the_schema_the_subject_has(broker, registry):  # noqa: F811
    topic = broker.topic(1)
    schema = {"type": "record", "name": "r", "namespace": "shop", "fields": [
        {"name": "more", "type": {"type": "record", "name": "m", "fields": [{"name": "v", "type": "bytes"}]}, "default": {"v": "\u00ffA"}},
        {"name": "usr", "type": ["string", "null"]}, {"name": "n", "type": "double", "default": 1.5}, {"name": "note", "type": ["null", "string"]},
        {"name": "color", "type": {"type": "enum", "name": "c", "symbols": ["RED", "GREEN"]}}, {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "fixed", "name": "p", "size": 6, "logicalType": "decimal", "precision": 12, "scale": 4}}]}
    registry.add(f"{topic}-value", schema)
    sql = (table("t", "id INTEGER, usr VARCHAR, color VARCHAR, price DECIMAL(8,2)", topic, broker, format="avro", schema_registry=registry.url)
           + "INSERT INTO t VALUES (1, 'ann', 'GREEN', -1.25), (2, NULL, 'RED', 99999.99);\n")
    run_clink("run", "-e", sql)
    got = avro_rows(registry, topic, [v for _, v in broker.read(topic, 1)])
    base = {"more": {"v": b"\xffA"}, "n": 1.5, "note": None}
    assert got == [{**base, "usr": "ann", "color": "GREEN", "id": 1, "price": decimal.Decimal("-1.2500")},
                   {**base, "usr": None, "color": "RED", "id": 2, "price": decimal.Decimal("99999.9900")}]
    assert len(registry.subjects[f"{topic}-value"]) == 1
    bad = run_clink("run", "-e", sql.replace("'RED'", "'BLUE'"), ok=False)
    assert "column \"color\": 'BLUE' is no symbol of shop.c" in bad.err, bad.err


def test_each_schema_is_fetched_once_and_older_ones_lack_columns(broker, registry):  # noqa: F811
    topic = broker.topic(2)
    old = avro(registry, topic, records(("id", "int")), [{"id": i} for i in range(500)])
    new = avro(registry, topic, {"type": "record", "name": "r", "fields": [{"name": "usr", "type": ["null", "string"], "default": None},
                                                                          {"name": "id", "type": "long"}]},
               [{"id": i, "usr": f"u{i}"} for i in range(500, 1000)])
    mixed = [v for pair in zip(old, new) for v in pair]
    broker.send(topic, mixed)
    registry.hits.clear()
    sql = table("o", "id BIGINT, usr VARCHAR", topic, broker, format="avro", schema_registry=registry.url, bounded="true")
    got = run_clink("run", "-p", 1, "-e", sql + "SELECT * FROM o").rows
    assert sorted(got, key=lambda r: r["id"]) == [{"id": i, "usr": None if i < 500 else f"u{i}"} for i in range(1000)]
    assert registry.count("/schemas/ids/1") == registry.count("/schemas/ids/2") == 1, registry.hits
    refused = run_clink("run", "-e", sql.replace("usr VARCHAR", "usr VARCHAR NOT NULL") + "SELECT * FROM o", ok=False)
    assert 'column "usr" of the table is VARCHAR, and the schema has no such field' in refused.err, refused.err


@pytest.mark.parametrize("column,kind,sentence", [
    ("id INTEGER", "long", 'field "id" of the schema is long, and the table has INTEGER there'),
    ("id BIGINT", ["null", "string"], 'field "id" of the schema is string, and the table has BIGINT there'),
    ("id DECIMAL(5,2)", logical("bytes", "decimal", precision=6, scale=2), 'field "id" of the schema is decimal(6,2), and the table has DECIMAL(5,2) there'),
    ("id ROW<a VARCHAR>", records(("a", "int")), 'field "id.a" of the schema is int, and the table has VARCHAR there'),
    ("id BIGINT, other VARCHAR", "long", 'column "other" of the table is VARCHAR, and the schema has no such field'),
])
def test_a_table_that_does_not_fit_its_schema_is_refused_before_anything_runs(broker, registry, column, kind, sentence):  # noqa: F811
    topic = broker.topic(1)
    registry.add(f"{topic}-value", {**records(("id", kind)), "name": "outer"})
    t = table("o", column, topic, broker, format="avro", schema_registry=registry.url)
    refused = run_clink("run", "-e", t + "SELECT * FROM o", ok=False)
    assert sentence in refused.err and f"{topic}-value" in refused.err, refused.err


def test_a_column_without_a_place_in_the_schema_is_refused_before_anything_is_written(broker, registry):  # noqa: F811
    topic = broker.topic(1)
    registry.add(f"{topic}-value", records(("id", "int")))
    write = lambda columns, values: run_clink("run", "-e", table("o", columns, topic, broker, format="avro", schema_registry=registry.url)
                                              + f"INSERT INTO o VALUES ({values});\n", ok=False).err
    assert 'field "id" of the schema is int, and the table has BIGINT there' in write("id BIGINT", "1")
    assert 'column "more" of the table is VARCHAR, and the schema has no such field' in write("id INTEGER, more VARCHAR", "1, 'x'")
    assert 'field "id" of the schema is int without a default, and the table has no such column' in write("more VARCHAR", "'x'")
    assert 'column "id" is NULL, and the schema has no null there' in write("id INTEGER", "NULL")
    assert broker.read(topic, 1) == []


def test_a_registry_that_is_away_or_does_not_let_us_in_is_a_sentence(broker, tmp_path):  # noqa: F811
    topic = broker.topic(1)
    with Registry(password="geheim") as r:
        url = r.url
        sql = lambda **o: table("o", "id BIGINT", topic, broker, format="avro", schema_registry=url, bounded="true", **o) + "SELECT * FROM o"
        refused = run_clink("run", "-e", sql(), ok=False).err
        assert "does not let us in: the answer is 401" in refused and "schema_registry.user" in refused, refused
        who = {"schema_registry__user": "clink", "schema_registry__password": "${env:REGISTRY_PASSWORD}"}
        missing = run_clink("run", "-e", sql(**who), ok=False, env={**os.environ, "REGISTRY_PASSWORD": "geheim"}).err
        assert f"has no subject {topic}-value" in missing and "geheim" not in missing, missing
        r.add(f"{topic}-value", records(("id", "long")))
        assert run_clink("run", "-e", sql(**who), env={**os.environ, "REGISTRY_PASSWORD": "geheim"}).rows == []
        plain = run_clink("run", "-e", sql(schema_registry__user="clink", schema_registry__password="geheim"), ok=False).err
        assert "must be '${env:NAME}' or '${file:PATH}'" in plain
    down = run_clink("run", "-e", sql(), ok=False).err
    assert f"the schema registry at {url}, asked for subject {topic}-value: no answer: " in down, down
    none = run_clink("run", "-e", table("o", "id BIGINT", topic, broker, format="avro") + "SELECT * FROM o", ok=False).err
    assert "format 'avro' needs the option 'schema_registry'" in none, none
    inside = run_clink("run", "-e", table("o", "id BIGINT", topic, broker, format="avro", schema_registry="http://ann:hush@localhost") + "SELECT * FROM o", ok=False).err
    assert "option 'schema_registry' says in the address who we are" in inside, inside


BAD = [(b"plain text", "the record does not begin with a zero byte and the number of its schema"), (b"", "the record is empty"),
       (b"\0\0\0\0\x63\x02", "has no schema 99"), (b"\0\0\0\0\x01\x80", "the message ends in the middle of a value"),
       (b"\0\0\0\0\x01\x02\x02", "1 bytes stand behind the message"), (b"\0\0\0\0\x02\x02a", 'schema 2 of the registry: field "id" of the schema is string')]


@pytest.mark.parametrize("on_error", ["fail", "skip", "dead_letter"])
def test_records_that_are_none_obey_on_error(broker, registry, tmp_path, on_error):  # noqa: F811
    topic = broker.topic(1)
    good = avro(registry, topic, records(("id", "long")), [{"id": i} for i in range(10)])
    registry.add("other", records(("id", "string")))
    options = {"on_error": on_error} if on_error != "dead_letter" else {"on_error": on_error, "dead_letter_table": "letters"}
    letters = f"CREATE TABLE letters (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/letters');\n"
    sql = letters + table("o", "id BIGINT", topic, broker, format="avro", schema_registry=registry.url, bounded="true", **options) + "SELECT id FROM o"
    if on_error == "fail":
        for at, (value, why) in enumerate(BAD):
            one = broker.topic(1)
            registry.add(f"{one}-value", records(("id", "long")))
            broker.send(one, good[:2] + [value])
            failed = run_clink("run", "-e", sql.replace(f"'{topic}'", f"'{one}'"), ok=False).err
            assert f"topic {one}, partition 0, offset 2" in failed and why in failed, failed
        return
    broker.send(topic, [v for k, v in enumerate(good) for v in ([v, BAD[k][0]] if k < len(BAD) else [v])])
    assert run_clink("run", "-e", sql).rows == [{"id": i} for i in range(10)]
    if on_error == "dead_letter":
        got = read_rows(tmp_path / "letters")
        assert [(base64.b64decode(r["raw"]), r["split"], r["offset"]) for r in got] == [(v, f"{topic}-0", 2 * k + 1) for k, (v, _) in enumerate(BAD)]
        assert all(why in r["reason"] for r, (_, why) in zip(got, BAD)), got


def test_a_registry_that_goes_away_in_a_run_is_waited_for(broker, registry, tmp_path):  # noqa: F811
    topic, out = broker.topic(1), tmp_path / "out"
    first = avro(registry, topic, records(("id", "int")), [{"id": i} for i in range(100)])
    second = avro(registry, topic, records(("id", "long")), [{"id": i} for i in range(100, 200)])
    broker.send(topic, first)
    job = Job(tmp_path, table("o", "id BIGINT", topic, broker, format="avro", schema_registry=registry.url)
              + f"CREATE TABLE s (id BIGINT) WITH (connector='file', format='json', path='{out}');\nINSERT INTO s SELECT id FROM o;\n")
    job.start(1)
    wait_for(lambda: len(read_rows(out)) == 100, job)
    port = registry.port
    registry.stop()
    broker.send(topic, second)
    wait_for(lambda: "trying again" in job.log.read_text(), job)
    registry.start(port)
    wait_for(lambda: len(read_rows(out)) == 200, job)
    job.kill()
    assert sorted(r["id"] for r in read_rows(out)) == list(range(200))


def test_rows_without_a_place_in_the_schema_obey_on_error(broker, registry, tmp_path):  # noqa: F811
    topic = broker.topic(1)
    registry.add(f"{topic}-value", records(("id", "long"), ("color", {"type": "enum", "name": "c", "symbols": ["RED", "GREEN"]})))
    letters = f"CREATE TABLE letters (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/letters');\n"
    sql = (letters + table("t", "id BIGINT, color VARCHAR", topic, broker, format="avro", schema_registry=registry.url, on_error="dead_letter",
                           dead_letter_table="letters") + "INSERT INTO t VALUES (1, 'RED'), (2, 'BLUE'), (3, NULL), (4, 'GREEN');\n")
    run_clink("run", "-p", 1, "-e", sql)
    assert avro_rows(registry, topic, [v for _, v in broker.read(topic, 1)]) == [{"id": 1, "color": "RED"}, {"id": 4, "color": "GREEN"}]
    got = read_rows(tmp_path / "letters")
    assert [json.loads(base64.b64decode(r["raw"])) for r in got] == [{"id": 2, "color": "BLUE"}, {"id": 3, "color": None}]
    assert "'BLUE' is no symbol of c" in got[0]["reason"] and "is NULL, and the schema has no null there" in got[1]["reason"]


# ---- protobuf ----

PROTO = """
// A comment; /* and one in it
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
option java_package = "x.y";
enum Color { RED = 0; GREEN = 7; reserved 3; }
message Other { reserved 4, 8 to 10; int32 x = 1; }
message Order {
  message Item { string name = 1; optional int32 n = 2; repeated Color colors = 3; Item inside = 4; }
  int32 i = 1; int64 l = 2 [deprecated = true]; sint32 si = 3; sint64 sl = 4; uint32 u = 5; uint64 ul = 6; fixed32 f32 = 7; fixed64 f64 = 8;
  sfixed32 s32 = 9; sfixed64 s64 = 10; float f = 11; double d = 12; bool b = 13; string s = 14; bytes y = 15; Color c = 16; Color cn = 17;
  optional int64 maybe = 18; google.protobuf.Timestamp at = 19; google.protobuf.Int64Value wrapped = 20;
  repeated int64 list = 21; repeated string names = 22; map<string, double> m = 23; map<int32, Item> items = 24; Item item = 25;
  repeated sint32 unpacked = 26 [packed = false]; oneof one { string first = 27; int64 second = 28; } repeated Item all = 29; .shop.Other ignored = 1000;
}
"""
PROTO_COLUMNS = """i INTEGER, l BIGINT, si INTEGER, sl BIGINT, u BIGINT, ul DECIMAL(20,0), f32 BIGINT, f64 BIGINT, s32 INTEGER, s64 BIGINT, f REAL, d DOUBLE,
    b BOOLEAN, s VARCHAR, y BYTES, c VARCHAR, cn INTEGER, maybe BIGINT, at TIMESTAMP_LTZ(6), wrapped BIGINT, list ARRAY<BIGINT>, names ARRAY<VARCHAR>,
    m MAP<VARCHAR, DOUBLE>, items MAP<INTEGER, ROW<name VARCHAR, n INTEGER>>, item ROW<name VARCHAR, n INTEGER, colors ARRAY<VARCHAR>, inside ROW<name VARCHAR>>,
    unpacked ARRAY<INTEGER>, first VARCHAR, second BIGINT, "all" ARRAY<ROW<n INTEGER>>"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    d = tmp_path_factory.mktemp("proto")
    (d / "shop_order.proto").write_text(PROTO)
    include = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
    assert protoc.main(["", f"-I{d}", f"-I{include}", f"--python_out={d}", str(d / "shop_order.proto")]) == 0
    sys.path.insert(0, str(d))
    return importlib.import_module("shop_order_pb2")


def order(shop, n):
    o = shop.Order(i=-n, l=n << 40, si=-n * 3, sl=-(n << 33), u=(1 << 32) - 1 - n, ul=(1 << 64) - 1 - n, f32=n, f64=n << 50, s32=-n, s64=-(n << 44), f=n / 4, d=n / 3,
                   b=n % 2 == 0, s="ö" * (n % 20), y=bytes([0, n % 256]), c=[0, 7][n % 2], cn=[7, 0][n % 2], list=[k - 2 for k in range(n % 5)],
                   names=["a" * 20, ""][:n % 3], m={f"k{k}": k / 8 for k in range(n % 3)}, unpacked=[-k for k in range(n % 4)], ignored=shop.Other(x=n))
    if n % 3:
        o.maybe = n % 2
        o.at.FromMicroseconds(1709209815123456 + n * 86400000001)
        o.wrapped.value = n - 1
        o.item.name = f"n{n}"
        o.item.colors.extend([0, 7])
        o.item.inside.inside.name = "deep"
        o.first = ""
    else:
        o.second = n
    for k in range(n % 3):
        o.items[k].name = f"i{k}"
        o.all.add(n=k)
    return o


def order_shown(o):
    opt = lambda m, f: getattr(m, f) if m.HasField(f) else None
    name = lambda v: {0: "RED", 7: "GREEN"}[v]
    item = lambda m: {"name": m.name, "n": opt(m, "n"), "colors": [name(c) for c in m.colors], "inside": {"name": m.inside.name} if m.HasField("inside") else None}
    return {"i": o.i, "l": o.l, "si": o.si, "sl": o.sl, "u": o.u, "ul": o.ul, "f32": o.f32, "f64": o.f64, "s32": o.s32, "s64": o.s64, "f": o.f, "d": o.d,
            "b": o.b, "s": o.s, "y": base64.b64encode(o.y).decode(), "c": name(o.c), "cn": o.cn, "maybe": opt(o, "maybe"),
            "at": iso(o.at.ToDatetime()) + "Z" if o.HasField("at") else None, "wrapped": o.wrapped.value if o.HasField("wrapped") else None, "list": list(o.list),
            "names": list(o.names), "m": dict(o.m), "items": {str(k): {"name": v.name, "n": opt(v, "n")} for k, v in o.items.items()},
            "item": item(o.item) if o.HasField("item") else None, "unpacked": list(o.unpacked), "first": opt(o, "first"), "second": opt(o, "second"),
            "all": [{"n": opt(a, "n")} for a in o.all]}


def names_of(columns):
    flat = columns
    while "<" in flat:
        flat = re.sub(r"<[^<>]*>", "", flat)
    return [c.split()[0] for c in flat.split(",")]


def by_i(rows):
    return sorted(({**r, "m": dict(sorted(r["m"].items())), "items": dict(sorted(r["items"].items()))} for r in rows), key=lambda r: r["i"])


def test_protobuf_of_every_type_is_read_and_written(broker, registry, shop, tmp_path):  # noqa: F811
    topic, copy, derived = broker.topic(2), broker.topic(1), broker.topic(1)
    serialized = base64.b64encode(shop.DESCRIPTOR.serialized_pb).decode()
    for t in (topic, copy):
        registry.add(f"{t}-value", PROTO, "PROTOBUF", serialized=serialized)
    client = SchemaRegistryClient({"url": registry.url})
    s = ProtobufSerializer(shop.Order, client, {"auto.register.schemas": False, "use.latest.version": True})
    orders = [order(shop, n) for n in range(200)]
    broker.send(topic, [s(o, SerializationContext(topic, MessageField.VALUE)) for o in orders])
    options = {"format": "protobuf", "schema_registry": registry.url}
    sql = table("o", PROTO_COLUMNS, topic, broker, bounded="true", schema_registry__message="Order", **options)
    want = by_i([order_shown(o) for o in orders])
    assert by_i(run_clink("run", "-p", 2, "-e", sql + "SELECT * FROM o").rows) == want
    # Written by the subject's schema, all that it can hold.
    columns = PROTO_COLUMNS.replace("ul DECIMAL(20,0), ", "").replace("u BIGINT, ", "").replace("f32 BIGINT, ", "")
    names = names_of(columns)
    written = (sql + table("c", columns, copy, broker, schema_registry__message="shop.Order", **options)
               + f"INSERT INTO c SELECT {', '.join(names)} FROM o;\n")
    run_clink("run", "-e", written)
    d = ProtobufDeserializer(shop.Order, {"use.deprecated.format": False})
    got = [d(v, SerializationContext(copy, MessageField.VALUE)) for _, v in broker.read(copy, 1)]
    plain = lambda rows: [{k: v for k, v in r.items() if k not in ("u", "ul", "f32")} for r in rows]
    assert plain(by_i([order_shown(o) for o in got])) == plain(want)
    # A subject without a schema gets the table's, and what is written by it is read again.
    more = (sql + table("c", columns, derived, broker, **options) + f"INSERT INTO c SELECT {', '.join(names)} FROM o;\n")
    run_clink("run", "-e", more, "--checkpoint-dir", tmp_path / "ck", "--name", "copy")
    again = table("c", columns, derived, broker, bounded="true", **options)
    assert by_i(run_clink("run", "-e", again + "SELECT * FROM c").rows) == plain(want)


def test_protobuf_that_does_not_fit_is_a_sentence(broker, registry):  # noqa: F811
    topic = broker.topic(1)
    registry.add(f"{topic}-value", 'syntax = "proto3"; message R { int64 id = 1; optional string s = 2; repeated int32 l = 3; }', "PROTOBUF")
    options = {"format": "protobuf", "schema_registry": registry.url}
    read = lambda columns, **o: run_clink("run", "-e", table("o", columns, topic, broker, **options, **o) + "SELECT * FROM o", ok=False).err
    assert 'field "id" of the schema is int64, and the table has VARCHAR there' in read("id VARCHAR")
    assert 'field "l" of the schema is repeated int32, and the table has INTEGER there' in read("l INTEGER")
    assert "the schema has no message Missing" in read("id BIGINT", schema_registry__message="Missing")
    write = lambda columns, values: run_clink("run", "-e", table("o", columns, topic, broker, **options) + f"INSERT INTO o VALUES ({values});\n", ok=False).err
    assert 'column "id" is NULL, and the schema has no absence there' in write("id BIGINT, s VARCHAR", "NULL, NULL")
    assert 'column "d" of the table is DECIMAL(5,2), and the schema has no such field' in write("d DECIMAL(5,2)", "1.5")
    bare = run_clink("run", "-e", table("o", "d DECIMAL(5,2)", broker.topic(1), broker, **options) + "INSERT INTO o VALUES (1.5);\n", ok=False).err
    assert 'column "d": protobuf has no type for DECIMAL(5,2); cast it to VARCHAR' in bare, bare
    registry.add(f"{topic}-value", 'syntax = "proto3"; message R { Missing id = 1; }', "PROTOBUF")
    assert "field id of message R is a Missing, which is neither in the schema nor in what it refers to" in read("id BIGINT")
    registry.add(f"{topic}-value", 'syntax = "proto3"; message R { int64 id 1; }', "PROTOBUF")
    assert "the schema is no .proto: line 1 has '1' where '=' should be" in read("id BIGINT")


def test_schemas_that_refer_to_others(broker, registry, tmp_path):  # noqa: F811
    a, b = broker.topic(1), broker.topic(1)
    registry.add("money", {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]})
    registry.add(f"{a}-value", records(("price", "shop.Money")), references=[{"name": "shop.Money", "subject": "money", "version": 1}])
    registry.add("common/money", 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }', "PROTOBUF")
    registry.subjects["common%2Fmoney"] = registry.subjects["common/money"]
    registry.add(f"{b}-value", 'syntax = "proto3"; import "money.proto"; message R { shop.Money price = 1; }', "PROTOBUF",
                 references=[{"name": "money.proto", "subject": "common/money", "version": 1}])
    for topic, kind in ((a, "avro"), (b, "protobuf")):
        options = {"format": kind, "schema_registry": registry.url}
        t = table("o", "price ROW<cents BIGINT>", topic, broker, bounded="true", **options)
        run_clink("run", "-e", t + "CREATE TABLE v (c BIGINT);\nINSERT INTO v VALUES (5), (6);\nINSERT INTO o SELECT ROW(c) FROM v;\n")
        assert run_clink("run", "-e", t + "SELECT price.cents AS c FROM o").rows == [{"c": 5}, {"c": 6}]
