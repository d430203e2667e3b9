"""What is beside a record's value, and records that are changes of rows (Debezium's envelope), against a real broker."""
import base64
import json
import os
import random
import time

import pytest
from confluent_kafka import Producer
from conftest import read_rows, run_clink
from kafka_tables import Job, broker, orders, table, wait_for  # noqa: F401

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


def test_metadata_columns(broker):
    """Key, headers, time, partition, offset and topic of each record beside its value, also where some records do not fit."""
    topic = broker.topic(3)
    p = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True})
    want = []
    for i in range(300):
        key = None if i % 5 == 0 else f"key {i}"
        headers = None if i % 4 == 0 else [("n", str(i)), ("empty", None), ("trace", b"\xff" if i % 8 == 1 else "abc")]
        bad = i % 7 == 3
        p.produce(topic, "{" if bad else json.dumps({"id": i, "offset": "of the value"}), key=key, headers=headers, partition=i % 3,
                  timestamp=1_600_000_000_000 + i)
        if not bad:
            want.append((i, key, i % 3, i // 3, 1_600_000_000_000 + i))
    assert p.flush(60) == 0
    columns = ("k VARCHAR METADATA FROM 'key', id BIGINT, p INTEGER METADATA FROM 'partition' VIRTUAL, offset BIGINT NOT NULL METADATA,"
               " at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', ms BIGINT METADATA FROM 'timestamp', h MAP<VARCHAR, VARCHAR> METADATA FROM 'headers',"
               " topic VARCHAR METADATA, raw BYTES METADATA FROM 'key', WATERMARK FOR at AS at - INTERVAL '1' SECOND")
    sql = table("o", columns, topic, broker, bounded="true", on_error="skip")
    got = run_clink("run", "-p", 2, "--set", "batch_rows=13", "-e", sql + "SELECT id, k, p, offset, ms, at, topic, h, CAST(raw AS VARCHAR) = k AS same FROM o").rows
    assert sorted((r["id"], r["k"], r["p"], r["offset"], r["ms"]) for r in got) == sorted(want)
    for r in got:
        i = r["id"]
        ms = 1_600_000_000_000 + i
        assert r["topic"] == topic and r["same"] is (True if r["k"] else None)
        assert r["at"] == time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + (f".{ms % 1000:03d}" if ms % 1000 else "") + "Z"
        headers = {} if i % 4 == 0 else {"n": str(i), "empty": None, "trace": None if i % 8 == 1 else "abc"}
        assert (dict(r["h"]) if isinstance(r["h"], list) else r["h"]) == headers, r["h"]
    misspelt = sql.replace("id BIGINT", "ID BIGINT, zip BIGINT").replace("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(0)")
    r = run_clink("run", "-e", misspelt + 'SELECT ID, zip, k, topic, CAST(at AS TIMESTAMP_LTZ(6)) AS at FROM o')
    assert 'no record of o that was read has a key "ID", "zip": NULL in every row; case counts, and there is "id"\n' in r.err, r.err
    assert all(row["ID"] is None and "." not in row["at"] for row in r.rows)
    some = run_clink("run", "-e", sql + "SELECT MAX(offset) AS m, COUNT(*) AS n FROM o WHERE p = 1").rows
    assert some == [{"m": max(w[3] for w in want if w[2] == 1), "n": sum(w[2] == 1 for w in want)}]


@pytest.mark.parametrize("column, sentence", [
    ("o BIGINT METADATA FROM 'offse'", "there is no metadata 'offse': it is one of key|headers|timestamp|partition|offset|topic"),
    ("key BIGINT METADATA", "which is VARCHAR or BYTES"),
    ("offset VARCHAR METADATA", "which is BIGINT"),
    ("headers VARCHAR METADATA", "MAP<VARCHAR, BYTES>"),
    ("key VARCHAR NOT NULL METADATA", "a record may have no key"),
])
def test_metadata_columns_that_cannot_be(broker, orders, column, sentence):
    r = run_clink("run", "-e", table("o", f"id BIGINT, {column}", orders, broker, bounded="true") + "SELECT * FROM o", ok=False)
    assert r.code == 1 and sentence in r.err, r.err


def test_metadata_columns_are_read_only(broker, orders):
    r = run_clink("run", "-e", table("o", "id BIGINT, offset BIGINT METADATA", orders, broker) + "INSERT INTO o VALUES (1, 2)", ok=False)
    assert r.code == 1 and "is read, not written" in r.err, r.err


def test_a_time_that_is_none_is_a_bad_record(broker):
    """Its writer can say any number, where the topic lets him; as a number it is read."""
    topic = broker.topic(1, message_timestamp_after_max_ms=2**63 - 1)
    p = Producer({"bootstrap.servers": broker.address})
    times = [1, 253402300799999, 253402300800000, 1_700_000_000_000_000, 2**63 - 1, 5]
    for i, ms in enumerate(times):
        p.produce(topic, json.dumps({"id": i}), timestamp=ms)
    assert p.flush(60) == 0
    for kind in ("TIMESTAMP_LTZ(3)", "TIMESTAMP(6)"):
        columns = f"id BIGINT, at {kind} METADATA FROM 'timestamp'"
        r = run_clink("run", "-e", table("o", columns, topic, broker, bounded="true") + "SELECT id FROM o", ok=False)
        assert r.code == 1 and "offset 2: the record's timestamp is behind the year 9999" in r.err and "BIGINT" in r.err, r.err
        r = run_clink("run", "-e", table("o", columns, topic, broker, bounded="true", on_error="skip") + "SELECT id, CAST(at AS VARCHAR) AS at FROM o")
        assert [x["id"] for x in r.rows] == [0, 1, 5] and r.rows[1]["at"].startswith("9999-12-31 23:59:59.999") and "3 records of o did not fit" in r.err
    got = run_clink("run", "-e", table("o", "id BIGINT, at BIGINT METADATA FROM 'timestamp'", topic, broker, bounded="true") + "SELECT at FROM o").rows
    assert [x["at"] for x in got] == times


def changes_of(rnd, count):
    """Random changes in Debezium's envelope, some beside their schema, and the rows that are there in the end."""
    rows, out = {}, []
    for _ in range(count):
        key = rnd.randrange(40)
        old, new = rows.get(key), {"id": key, "usr": f"u{rnd.randrange(5)}", "amount": rnd.randrange(1000), "note": rnd.choice(["", "a \"}] b", None])}
        if old and rnd.random() < 0.3:
            change, rows[key] = {"before": old, "after": None, "op": "d"}, None
        elif old:
            change, rows[key] = {"before": old, "after": new, "op": "u"}, new
        else:
            change, rows[key] = {"before": None, "after": new, "op": rnd.choice("cr")}, new
        change.update(source={"table": "orders", "nested": [{"}": "]"}]}, ts_ms=1)
        out.append((key, change if rnd.random() < 0.7 else {"schema": {"type": "struct", "fields": []}, "payload": change}))
    return out, [r for r in rows.values() if r]


def send_changes(broker, topic, changes, partitions):
    p = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True})
    for key, change in changes:
        p.produce(topic, json.dumps(change), key=str(key), partition=key % partitions)
        if "payload" not in change and change["op"] == "d":
            p.produce(topic, None, key=str(key), partition=key % partitions)  # as Debezium does for compaction
    assert p.flush(60) == 0


def totals_of(rows):
    want = {}
    for r in rows:
        n, s = want.get(r["usr"], (0, 0))
        want[r["usr"]] = (n + 1, s + r["amount"])
    return want


CHANGING = "id BIGINT, usr VARCHAR, amount BIGINT, note VARCHAR"


@pytest.mark.parametrize("batch_rows", [1, 7, 4096])
def test_changes_by_debezium_are_changes(broker, batch_rows):
    rnd = random.Random(batch_rows)
    topic = broker.topic(3)
    changes, rows = changes_of(rnd, 2000)
    send_changes(broker, topic, changes, 3)
    sent = [(str(k).encode(), json.dumps(c).encode()) for k, c in changes]
    assert sorted((k, v) for k, v in broker.read(topic, 3) if v) == sorted(sent)
    sql = table("o", CHANGING + ", k VARCHAR METADATA FROM 'key'", topic, broker, bounded="true", format="debezium-json")
    got = run_clink("run", "-p", 2, "--set", f"batch_rows={batch_rows}", "-e", sql + "SELECT usr, COUNT(*) AS n, SUM(amount) AS s FROM o GROUP BY usr").rows
    assert {r["usr"]: (r["n"], r["s"]) for r in got} == totals_of(rows)
    got = run_clink("run", "--set", f"batch_rows={batch_rows}", "--changes=json", "-e", sql + "SELECT id, usr, amount, note FROM o").rows
    net = {}
    for r in got:
        key = tuple(r[c] for c in ("id", "usr", "amount", "note"))
        net[key] = net.get(key, 0) + (1 if r["op"] in ("+I", "+U") else -1)
    assert {k for k, n in net.items() if n} == {(r["id"], r["usr"], r["amount"], r["note"]) for r in rows} and set(net.values()) <= {0, 1}


def test_changes_survive_kills_between_the_halves_of_an_update(broker, tmp_path):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    source, sink = broker.topic(3), broker.topic(2)
    changes, rows = changes_of(rnd, 6000)
    job = Job(tmp_path, "SET batch_rows = 1;\n" + table("o", CHANGING, source, broker, format="debezium-json")
              + table("t", "usr VARCHAR, n BIGINT, s BIGINT, PRIMARY KEY (usr) NOT ENFORCED", sink, broker)
              + "INSERT INTO t SELECT usr, COUNT(*), SUM(amount) FROM o GROUP BY usr;\n")
    for life in range(6):
        send_changes(broker, source, changes[life * 1000:(life + 1) * 1000], 3)
        job.start(rnd.choice([1, 2, 3]), interval_ms=20)
        time.sleep(0.2 + rnd.random() * 0.8)
        job.kill()
    job.start(2)

    def latest():
        last = {json.loads(k)["usr"]: json.loads(v) if v else None for k, v in broker.read(sink, 2)}
        return {u: (r["n"], r["s"]) for u, r in last.items() if r}

    wait_for(lambda: latest() == totals_of(rows), job, 60)
    time.sleep(0.3)
    job.kill()
    assert latest() == totals_of(rows)


@pytest.mark.parametrize("column", ["off BIGINT METADATA FROM 'offset'", "at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'", "partition INTEGER METADATA",
                                    "headers MAP<VARCHAR, VARCHAR> METADATA"])
def test_what_is_of_a_record_is_of_no_row_that_changes(broker, orders, column):
    r = run_clink("run", "-e", table("o", f"id BIGINT, {column}", orders, broker, bounded="true", format="debezium-json") + "SELECT * FROM o", ok=False)
    assert r.code == 1 and "the record that takes a row back has another one than the row" in r.err, r.err


def test_what_is_no_change(broker, tmp_path):
    topic = broker.topic(1)
    good = {"before": None, "after": {"id": 1, "usr": "a"}, "op": "c"}
    broker.send(topic, [good, "{}", {"before": None, "after": {"id": 2}, "op": "u"}, {"op": "t"}, "", {"op": "c", "after": {"id": "x"}}, good])
    columns, options = "id BIGINT, usr VARCHAR", {"bounded": "true", "format": "debezium-json"}
    r = run_clink("run", "-e", table("o", columns, topic, broker, **options) + "SELECT id FROM o", ok=False)
    assert r.code == 1 and "partition 0, offset 1: this is no change by Debezium" in r.err, r.err
    r = run_clink("run", "-e", table("o", columns, topic, broker, start="offsets", start_offsets="0:2", **options) + "SELECT id FROM o", ok=False)
    assert r.code == 1 and "offset 2: an update without the row before it" in r.err and "REPLICA IDENTITY FULL" in r.err
    dead = tmp_path / "dead"
    sql = (f"CREATE TABLE d (raw BYTES, split VARCHAR, offset BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='{dead}');\n"
           + table("o", columns, topic, broker, on_error="dead_letter", dead_letter_table="d", **options) + "SELECT COUNT(*) AS n FROM o;")
    assert run_clink("run", "-e", sql).rows == [{"n": 2}]
    letters = sorted(read_rows(dead), key=lambda r: r["offset"])
    assert [r["offset"] for r in letters] == [1, 2, 3, 4, 5]
    assert base64.b64decode(letters[2]["raw"]) == b'{"op": "t"}' and "none of c, r, u, d" in letters[2]["reason"]
    r = run_clink("run", "-e", table("o", columns, topic, broker, format="debezium-json") + "INSERT INTO o VALUES (1, 'a')", ok=False)
    assert r.code == 1 and "is read, not written" in r.err
    r = run_clink("run", "-e", table("o", columns, topic, broker, **options)
                  + f"CREATE TABLE f (id BIGINT) WITH (connector='file', format='json', path='{tmp_path}/out'); INSERT INTO f SELECT id FROM o", ok=False)
    assert r.code == 1 and "PRIMARY KEY" in r.err, r.err
