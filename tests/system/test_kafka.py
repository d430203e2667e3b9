"""Kafka topics as tables that are read, against a real broker: what is read is what was written, once, whatever dies."""
import os
import pty
import random
import re
import select
import subprocess
import time

import pytest
from confluent_kafka import Consumer, TopicPartition
from conftest import CLINK, read_rows, run_clink
from kafka_broker import Broker
from kafka_tables import AWAY_S, ORDERS, Job, broker, orders, table, wait_for  # noqa: F401

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


@pytest.mark.parametrize("p", [1, 3])
def test_a_bounded_topic_is_read_whole(broker, orders, p):
    sql = table("o", "id BIGINT, usr VARCHAR, amount BIGINT", orders, broker, bounded="true")
    got = run_clink("run", "-p", p, "-e", sql + "SELECT usr, COUNT(*) AS n, SUM(amount) AS s, MAX(id) AS m FROM o GROUP BY usr").rows
    want = {}
    for r in ORDERS:
        n, s, m = want.get(r["usr"], (0, 0, 0))
        want[r["usr"]] = (n + 1, s + r["amount"], max(m, r["id"]))
    assert {r["usr"]: (r["n"], r["s"], r["m"]) for r in got} == want and len(got) == len(want)


def test_killed_again_and_again_each_record_counts_once(broker, tmp_path):
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    topic, out = broker.topic(4), tmp_path / "out"
    job = Job(tmp_path, table("o", "id BIGINT", topic, broker)
              + f"CREATE TABLE s (id BIGINT) WITH (connector='file', format='json', path='{out}');\nINSERT INTO s SELECT id FROM o;\n")
    sent = 0
    for _ in range(5):
        job.start(rnd.choice([1, 2, 3]))
        for _ in range(3):
            more = rnd.randrange(1, 2000)
            broker.send(topic, [{"id": i} for i in range(sent, sent + more)])
            sent += more
            time.sleep(rnd.random() * 0.3)
        job.kill()
    job.start(2)
    wait_for(lambda: len(read_rows(out)) >= sent, job)
    job.kill()
    assert sorted(r["id"] for r in read_rows(out)) == list(range(sent))


def test_a_partition_that_comes_later_is_read_from_its_beginning(broker, tmp_path):
    """Where `latest` was is kept at once, long before the first interval has passed."""
    topic, out = broker.topic(12), tmp_path / "out"
    broker.send(topic, [{"id": -1}] * 100)
    job = Job(tmp_path, table("o", "id BIGINT", topic, broker, start="latest", discover_ms="100")
              + f"CREATE TABLE s (id BIGINT) WITH (connector='file', format='json', path='{out}');\nINSERT INTO s SELECT id FROM o;\n")
    job.start(2, interval_ms=3600000)
    wait_for(lambda: list(job.dir.glob("**/*.committed")), job)
    broker.widen(topic, 13)
    broker.send(topic, [{"id": i} for i in range(10)], partition=12)
    broker.send(topic, [{"id": i} for i in range(10, 15)], partition=3)
    job.kill()
    job.start(3)
    wait_for(lambda: len(read_rows(out)) >= 15, job)
    broker.widen(topic, 14)
    broker.send(topic, [{"id": i} for i in range(15, 20)], partition=13)
    wait_for(lambda: len(read_rows(out)) >= 20, job)
    job.kill()
    assert sorted(r["id"] for r in read_rows(out)) == list(range(20))


def test_the_broker_may_go_away_for_a_while(broker, tmp_path):
    own = Broker(str(tmp_path / "kafka"))
    own.start()
    try:
        topic, out = own.topic(2), tmp_path / "out"
        own.send(topic, [{"id": i} for i in range(100)])
        job = Job(tmp_path, table("o", "id BIGINT", topic, own)
                  + f"CREATE TABLE s (id BIGINT) WITH (connector='file', format='json', path='{out}');\nINSERT INTO s SELECT id FROM o;\n")
        job.start(1)
        wait_for(lambda: len(read_rows(out)) >= 100, job)
        own.stop()
        time.sleep(AWAY_S)
        own.start()
        own.send(topic, [{"id": i} for i in range(100, 200)])
        wait_for(lambda: len(read_rows(out)) >= 200, job)
        job.kill()
        assert sorted(r["id"] for r in read_rows(out)) == list(range(200))
    finally:
        own.stop()


POISON = ['{"id":1}', '{"id":"x"}', "", '{"id":2', '{"id":3}', '{\n "id":\n 4}', '{"id":5, "t":"a\nb"}', b"\xff\xfe"]


def test_records_that_do_not_fit(broker, tmp_path):
    topic = broker.topic(1)
    broker.send(topic, POISON + [None])
    columns = "id BIGINT"
    failed = run_clink("run", "-e", table("o", columns, topic, broker, bounded="true") + "SELECT id FROM o", ok=False)
    assert failed.code != 0 and f"topic {topic}, partition 0, offset 1" in failed.err and '"x"' in failed.err
    skipped = run_clink("run", "-e", table("o", columns, topic, broker, bounded="true", on_error="skip") + "SELECT id FROM o")
    assert sorted(r["id"] for r in skipped.rows) == [1, 3, 4]
    dead = tmp_path / "dead"
    sql = (f"CREATE TABLE d (raw BYTES, split VARCHAR, offset BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='{dead}');\n"
           + table("o", columns, topic, broker, bounded="true", on_error="dead_letter", dead_letter_table="d") + "SELECT id FROM o;")
    assert sorted(r["id"] for r in run_clink("run", "-e", sql).rows) == [1, 3, 4]
    assert sorted(r["offset"] for r in read_rows(dead)) == [1, 2, 3, 6, 7]


@pytest.mark.parametrize("options, sentence", [
    ({"topic": "nothere"}, "has no topic nothere"),
    ({"topic": "no good name"}, "no good name"),
    ({"brokers": "127.0.0.1:1", "timeout_ms": "700"}, "did not tell of topic"),
    ({"brokers": "127.0.0.1:75628"}, "whose port is no number from 1 to 65535"),
    ({"properties.no.such": "1"}, "no property 'no.such'"),
    ({"properties.acks": "0"}, "the table's own options say it"),
    ({"properties.sasl.password": "${env:CLINK_NO_SUCH}"}, "no variable CLINK_NO_SUCH"),
    ({"properties.security.protocol": "sasl_plaintext", "properties.sasl.mechanism": "PLAIN", "properties.sasl.username": "a",
      "properties.sasl.password": "hush-hush"}, "SASL"),
    ({"start": "offsets", "start_offsets": "0:99999999"}, "is to be first"),
    ({"start": "offsets", "start_offsets": "0;1"}, "not partitions and offsets"),
    ({"start": "offsets", "start_offsets": "0:1,0:2"}, "names partition 0 twice"),
    ({"start": "offsets", "start_offsets": "12:1"}, "names partition 12, and topic"),
    ({"start": "offsets"}, "go together"),
    ({"start": "group-offsets", "group": "never"}, "group never has committed no offset"),
    ({"start": "group-offsets"}, "needs the option 'group'"),
    ({"format": "xml"}, "xml"),
    ({"discover_ms": "-1"}, "discover_ms"),
])
def test_what_cannot_be_read_is_said_at_once(broker, orders, options, sentence):
    o = {"brokers": broker.address, "topic": orders, "bounded": "true", **options}
    words = ", ".join(f"{k}='{v}'" for k, v in o.items())
    began = time.monotonic()
    r = run_clink("run", "-e", f"CREATE TABLE o (id BIGINT) WITH (connector='kafka', {words}); SELECT id FROM o", ok=False)
    assert r.code not in (0, 124) and r.out == "" and sentence in r.err and "hush-hush" not in r.err, r.err
    assert time.monotonic() - began < 8


def test_starts(broker):
    topic = broker.topic(1)
    broker.send(topic, [{"id": i} for i in range(10)])
    for options, first in [({"start": "earliest"}, 0), ({"start": "offsets", "start_offsets": "0:4"}, 4),
                           ({"start": "timestamp", "start_timestamp_ms": "1"}, 0),
                           ({"start": "timestamp", "start_timestamp_ms": "9999999999999"}, 10), ({"start": "latest"}, 10)]:
        r = run_clink("run", "-e", table("o", "id BIGINT", topic, broker, bounded="true", **options) + "SELECT id FROM o")
        assert [x["id"] for x in r.rows] == list(range(first, 10)), options
    c = Consumer({"bootstrap.servers": broker.address, "group.id": "g"})
    c.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    c.close()
    r = run_clink("run", "-e", table("o", "id BIGINT", topic, broker, bounded="true", start="group-offsets", group="g") + "SELECT id FROM o")
    assert [x["id"] for x in r.rows] == [7, 8, 9]


@pytest.mark.parametrize("idle_ms", ["0", "300"])
def test_each_partition_has_a_time_of_its_own(broker, tmp_path, idle_ms):
    """One that is far ahead makes the rows of another not late, and an empty one holds all back - until it counts as idle."""
    topic, windows, raw = broker.topic(2), tmp_path / "windows", tmp_path / "raw"
    job = Job(tmp_path, table("o", "id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts", topic, broker, idle_timeout_ms=idle_ms)
              + f"CREATE TABLE w (at TIMESTAMP(3), n BIGINT) WITH (connector='file', format='json', path='{windows}');\n"
              + f"CREATE TABLE r (id BIGINT) WITH (connector='file', format='json', path='{raw}');\nEXECUTE STATEMENT SET BEGIN\n"
              + "INSERT INTO w SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY window_start, window_end;\n"
              + "INSERT INTO r SELECT id FROM o;\nEND;\n")
    rows = [{"id": i, "ts": f"2026-01-01 00:00:{i:02d}"} for i in (*range(10), 50)]
    job.start(1)
    broker.send(topic, rows, partition=0)
    wait_for(lambda: len(read_rows(raw)) == 11, job)
    if idle_ms == "0":
        assert read_rows(windows) == []
        broker.send(topic, rows, partition=1)
    wait_for(lambda: len(read_rows(windows)) >= 10, job)
    job.kill()
    assert sorted(r["n"] for r in read_rows(windows)) == [2 if idle_ms == "0" else 1] * 10


def test_how_far_a_table_is_behind_its_topic_is_on_the_line_of_progress(broker):
    """Nobody reads what is printed: the table falls behind. Then somebody does, and it catches up."""
    topic, count = broker.topic(2), 60000
    old = int((time.time() - 3600) * 1000)
    broker.send(topic, [{"id": i, "text": "x" * 100} for i in range(count)], timestamp=old)
    terminal, end = pty.openpty()
    p = subprocess.Popen([CLINK, "run", "-e", table("o", "id BIGINT, text VARCHAR", topic, broker) + "SELECT * FROM o"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=end)
    os.close(end)
    shown, rows = b"", 0

    def behind():
        return re.findall(r"([0-9.]+k?) records? \(([0-9a-z.]+)\) behind", shown.decode(errors="replace"))

    give_up = time.monotonic() + 100
    os.set_blocking(p.stdout.fileno(), False)
    while not (behind() and behind()[-1] == ("0", "0.00s")):
        assert time.monotonic() < give_up and p.poll() is None, shown[-500:]
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 65536)
        if behind():  # now it is read
            rows += (p.stdout.read() or b"").count(b"\n")
    p.kill()
    p.wait()
    os.close(terminal)
    first = behind()[0]
    assert first[0].endswith("k") and 10 < float(first[0][:-1]) <= count / 1000 and first[1] in ("1h00m", "1h01m"), behind()[:5]
    assert rows > count // 2
