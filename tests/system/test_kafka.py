"""Kafka topics as tables, against a real broker: what is read is what was written, once, whatever dies."""
import json
import os
import random
import signal
import socket
import subprocess
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from conftest import CLINK, TOP, run_clink


SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


def free_ports():
    """A port whose neighbour is free too."""
    for _ in range(100):
        a, b = socket.socket(), socket.socket()
        with a, b:
            a.bind(("127.0.0.1", 0))
            port = a.getsockname()[1]
            try:
                b.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                continue
    raise RuntimeError("no two free ports side by side")


class Broker:
    def __init__(self, directory):
        self.dir, self.port, self.proc, self.names = directory, free_ports(), None, 0
        self.address = f"127.0.0.1:{self.port}"

    def start(self):
        self.proc = subprocess.Popen([os.path.join(TOP, "tests", "servers", "kafka.sh"), self.dir, str(self.port)],
                                     stderr=subprocess.PIPE, text=True)
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        end = time.monotonic() + 240
        while True:
            if self.proc.poll() is not None:
                reason = self.proc.stderr.read()
                if self.proc.returncode == 3:
                    pytest.skip(f"no broker here: {reason}")
                raise RuntimeError(f"the broker ended: {reason}")
            try:
                self.admin.list_topics(timeout=1)
                return
            except Exception:
                assert time.monotonic() < end, "the broker does not answer"

    def stop(self, how=signal.SIGKILL):
        self.proc.send_signal(how)
        self.proc.wait()

    def topic(self, partitions):
        self.names += 1
        name = f"t{self.names}"
        for f in self.admin.create_topics([NewTopic(name, partitions, 1)]).values():
            f.result(30)
        return name

    def widen(self, topic, partitions):
        for f in self.admin.create_partitions([NewPartitions(topic, partitions)]).values():
            f.result(30)

    def send(self, topic, rows, partition=None, key=None):
        p = Producer({"bootstrap.servers": self.address})
        for r in rows:
            value = r if isinstance(r, (bytes, str)) or r is None else json.dumps(r)
            where = {} if partition is None else {"partition": partition}
            while True:
                try:
                    p.produce(topic, value, key=key(r) if key else None, **where)
                    break
                except BufferError:
                    p.poll(0.1)
        assert p.flush(60) == 0

    def read(self, topic, partitions):
        """All records: (key, value) in the order of each partition."""
        c = Consumer({"bootstrap.servers": self.address, "group.id": "reader", "isolation.level": "read_committed",
                      "enable.auto.commit": False})
        out = []
        for p in range(partitions):
            low, high = c.get_watermark_offsets(TopicPartition(topic, p), timeout=30)
            c.assign([TopicPartition(topic, p, low)])
            while high > low and c.position([TopicPartition(topic, p)])[0].offset < high:
                m = c.poll(30)
                assert m is not None and not m.error(), m and m.error()
                out.append((m.key(), m.value()))
        c.close()
        return out


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    b = Broker(str(tmp_path_factory.mktemp("kafka")))
    b.start()
    yield b
    b.stop()


def table(name, columns, topic, broker, **options):
    more = "".join(f", {k.replace('__', '.')}='{v}'" for k, v in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH (connector='kafka', brokers='{broker.address}', topic='{topic}'{more});\n"


ORDERS = [{"id": i, "usr": f"u{i * 7919 % 50}", "amount": i % 13} for i in range(20000)]


@pytest.fixture(scope="module")
def orders(broker):
    topic = broker.topic(12)
    broker.send(topic, ORDERS, key=lambda r: r["usr"])
    return topic


@pytest.mark.parametrize("p", [1, 3])
def test_a_bounded_topic_is_read_whole(broker, orders, p):
    sql = table("o", "id BIGINT, usr VARCHAR, amount BIGINT", orders, broker, bounded="true")
    got = run_clink("run", "-p", p, "-e", sql + "SELECT usr, COUNT(*) AS n, SUM(amount) AS s, MAX(id) AS m FROM o GROUP BY usr").rows
    want = {}
    for r in ORDERS:
        n, s, m = want.get(r["usr"], (0, 0, 0))
        want[r["usr"]] = (n + 1, s + r["amount"], max(m, r["id"]))
    assert {r["usr"]: (r["n"], r["s"], r["m"]) for r in got} == want and len(got) == len(want)


def test_rows_go_out_with_keys_and_changes_as_the_latest_of_a_key(broker, orders):
    copy, totals = broker.topic(3), broker.topic(3)
    sql = (table("o", "id BIGINT, usr VARCHAR, amount BIGINT", orders, broker, bounded="true")
           + table("c", "id BIGINT, usr VARCHAR", copy, broker, key="usr")
           + table("t", "usr VARCHAR, n BIGINT, PRIMARY KEY (usr) NOT ENFORCED", totals, broker)
           + "INSERT INTO c SELECT id, usr FROM o WHERE amount < 3;\n"
           + "INSERT INTO t SELECT usr, COUNT(*) FROM o GROUP BY usr HAVING COUNT(*) < 401;\n")
    run_clink("run", "-p", 2, "-e", sql)
    got = broker.read(copy, 3)
    assert sorted(json.loads(v)["id"] for _, v in got) == [r["id"] for r in ORDERS if r["amount"] < 3]
    assert all(json.loads(k) == {"usr": json.loads(v)["usr"]} for k, v in got)
    latest = {k: v for k, v in broker.read(totals, 3)}
    want = {u: n for u in {r["usr"] for r in ORDERS} if (n := sum(r["usr"] == u for r in ORDERS)) < 401}
    assert {json.loads(v)["usr"]: json.loads(v)["n"] for v in latest.values() if v} == want


class Job:
    """A job over an endless topic with checkpoints, started again after each death."""

    def __init__(self, tmp_path, sql):
        self.sql, self.dir, self.log, self.proc = tmp_path / "job.sql", tmp_path / "ck", tmp_path / "log", None
        self.sql.write_text(sql)

    def start(self, p, interval_ms=100):
        self.proc = subprocess.Popen([CLINK, "run", str(self.sql), "-p", str(p), "--checkpoint-dir", str(self.dir),
                                      "--checkpoint-interval-ms", str(interval_ms)], stderr=open(self.log, "a"), stdin=subprocess.DEVNULL)

    def kill(self, how=signal.SIGKILL):
        assert self.proc.poll() is None, self.log.read_text()
        self.proc.send_signal(how)
        self.proc.wait()


def rows_of(out):
    rows = []
    for f in sorted(out.glob("part-*")) if out.exists() else []:
        rows += [json.loads(line) for line in f.read_text().splitlines()]
    return rows


def wait_for(what, job, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert job.proc.poll() is None, job.log.read_text()
        assert time.monotonic() < end, "it did not come: " + job.log.read_text()
        time.sleep(0.02)


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
    wait_for(lambda: len(rows_of(out)) >= sent, job)
    job.kill()
    assert sorted(r["id"] for r in rows_of(out)) == list(range(sent))


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
    wait_for(lambda: len(rows_of(out)) >= 15, job)
    broker.widen(topic, 14)
    broker.send(topic, [{"id": i} for i in range(15, 20)], partition=13)
    wait_for(lambda: len(rows_of(out)) >= 20, job)
    job.kill()
    assert sorted(r["id"] for r in rows_of(out)) == list(range(20))


def test_the_broker_may_go_away_for_a_while(broker, tmp_path):
    own = Broker(str(tmp_path / "kafka"))
    own.start()
    try:
        topic, out = own.topic(2), tmp_path / "out"
        own.send(topic, [{"id": i} for i in range(100)])
        job = Job(tmp_path, table("o", "id BIGINT", topic, own)
                  + f"CREATE TABLE s (id BIGINT) WITH (connector='file', format='json', path='{out}');\nINSERT INTO s SELECT id FROM o;\n")
        job.start(1)
        wait_for(lambda: len(rows_of(out)) >= 100, job)
        own.stop()
        time.sleep(1)
        own.start()
        own.send(topic, [{"id": i} for i in range(100, 200)])
        wait_for(lambda: len(rows_of(out)) >= 200, job)
        job.kill()
        assert sorted(r["id"] for r in rows_of(out)) == list(range(200))
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
    assert sorted(r["offset"] for r in rows_of(dead)) == [1, 2, 3, 6, 7]


@pytest.mark.parametrize("options, sentence", [
    ({"topic": "nothere"}, "has no topic nothere"),
    ({"topic": "no good name"}, "no good name"),
    ({"brokers": "127.0.0.1:1", "timeout_ms": "700"}, "did not tell of topic"),
    ({"properties.no.such": "1"}, "no property 'no.such'"),
    ({"properties.acks": "0"}, "the table's own options say it"),
    ({"properties.sasl.password": "${env:CLINK_NO_SUCH}"}, "no variable CLINK_NO_SUCH"),
    ({"properties.security.protocol": "sasl_plaintext", "properties.sasl.mechanism": "PLAIN", "properties.sasl.username": "a",
      "properties.sasl.password": "hush-hush"}, "SASL"),
    ({"start": "offsets", "start_offsets": "0:99999999"}, "is to be first"),
    ({"start": "offsets", "start_offsets": "0;1"}, "not partitions and offsets"),
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
