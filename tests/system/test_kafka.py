"""Kafka topics as tables, against a real broker: what is read is what was written, once, whatever dies."""
import base64
import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from conftest import CLINK, read_rows, run_clink
from kafka_broker import Broker, NoBroker


SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    b = Broker(str(tmp_path_factory.mktemp("kafka")))
    try:
        b.start()
    except NoBroker as e:
        pytest.skip(str(e))
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


@pytest.mark.parametrize("declared, values", [("VARCHAR", ["a", "with \"quotes\"\n", "ü", "", None]), ("BYTES", [b"\x00\xff", b"a", b"", None]),
                                              ("BIGINT", [0, -(2**63), 2**63 - 1, None])])
@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_raw_keys_are_the_value_alone(broker, tmp_path, declared, values, delivery):
    """And records whose key is NULL have none. What is written is read again as METADATA."""
    rows = [{"id": i, "k": base64.b64encode(v).decode() if isinstance(v, bytes) else v} for i, v in enumerate(values)]
    (tmp_path / "in.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
    topic = broker.topic(3)
    src = f"CREATE TABLE src (id BIGINT, k {declared}) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson');\n"
    run_clink("run", "--name", "raw", "--checkpoint-dir", tmp_path / "ck", "-e", src + table("dst", f"id BIGINT, k {declared}", topic, broker, key="k", key__format="raw", delivery=delivery)
              + "INSERT INTO dst SELECT id, k FROM src;")
    want = {i: v if v is None or isinstance(v, bytes) else str(v).encode() for i, v in enumerate(values)}
    assert {json.loads(v)["id"]: k for k, v in broker.read(topic, 3)} == want
    if declared == "VARCHAR":
        r = run_clink("run", "-e", table("back", "id BIGINT, k VARCHAR METADATA FROM 'key'", topic, broker, bounded="true") + "SELECT id, k FROM back;")
        assert sorted((x["id"], x["k"]) for x in map(json.loads, r.out.splitlines())) == list(enumerate(values))


def test_raw_keys_of_changes(broker, orders):
    """The latest record of a key is its row, a deletion one without a value, as with JSON."""
    topic = broker.topic(3)
    run_clink("run", "-p", 2, "-e", table("o", "id BIGINT, usr VARCHAR, amount BIGINT", orders, broker, bounded="true")
              + table("t", "usr VARCHAR, n BIGINT, PRIMARY KEY (usr) NOT ENFORCED", topic, broker, key__format="raw")
              + "INSERT INTO t SELECT usr, COUNT(*) FROM o GROUP BY usr HAVING COUNT(*) < 401;\n")
    latest = {k.decode(): v for k, v in broker.read(topic, 3)}
    want = {u: n for u in {r["usr"] for r in ORDERS} if (n := sum(r["usr"] == u for r in ORDERS)) < 401}
    assert {k: json.loads(v)["n"] for k, v in latest.items() if v} == want


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
        time.sleep(1)
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


# ---- exactly once ----


def test_a_prepared_transaction_cannot_be_resumed(broker):
    """Why rows are written ahead: who dies between the manifest and its commit leaves a transaction open that holds readers, and the next
    producer of that id does not take it over but aborts it; the dead one's commit is refused."""
    topic = broker.topic(1)
    config = {"bootstrap.servers": broker.address, "transactional.id": "probe", "transaction.timeout.ms": 30000}
    dead = Producer(config)
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(topic, "prepared")
    dead.flush(30)
    assert broker.held(topic, 1) == [0] and broker.read(topic, 1) == []
    heir = Producer(config)
    heir.init_transactions(30)
    assert broker.read(topic, 1, wait=10) == [] and broker.held(topic, 1) == []
    with pytest.raises(KafkaException):
        dead.commit_transaction(10)
    heir.begin_transaction()
    heir.produce(topic, "again")
    heir.commit_transaction(30)
    assert broker.read(topic, 1, wait=10) == [(None, b"again")]


def test_results_of_twelve_partitions_once_each(broker, tmp_path):
    """Twelve partitions -> GROUP BY and windows -> topics, with kills at random moments: a reader of committed records sees each window
    once, and the latest record of each key is its total."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    topic, windows, totals = broker.topic(12), broker.topic(3), broker.topic(3)
    job = Job(tmp_path, table("o", "id BIGINT, usr VARCHAR, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND", topic, broker)
              + table("w", "usr VARCHAR, at TIMESTAMP, n BIGINT, s BIGINT", windows, broker, key="usr")
              + table("t", "usr VARCHAR, n BIGINT, s BIGINT, PRIMARY KEY (usr) NOT ENFORCED", totals, broker)
              + "EXECUTE STATEMENT SET BEGIN\n"
              + "INSERT INTO w SELECT usr, window_start, COUNT(*), SUM(id) FROM TABLE(TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '1' SECOND))"
                " GROUP BY usr, window_start, window_end;\n"
              + "INSERT INTO t SELECT usr, COUNT(*), SUM(id) FROM o GROUP BY usr;\nEND;\n")
    sent, want, sums = 0, {}, {}

    def send(count, step=2000):
        nonlocal sent
        for _ in range(count):
            at = sent // step
            row = {"id": sent, "usr": f"u{sent % 7}", "ts": f"2026-01-01 00:{at // 60:02d}:{at % 60:02d}"}
            rows.setdefault(sent % 12, []).append(row)
            if row["usr"] != "end":
                n, s = want.get((row["usr"], at), (0, 0))
                want[row["usr"], at] = (n + 1, s + sent)
                n, s = sums.get(row["usr"], (0, 0))
                sums[row["usr"]] = (n + 1, s + sent)
            sent += 1

    kills = 0
    for life in range(6):
        job.start(rnd.choice([1, 2, 3]))
        for _ in range(2):
            rows = {}
            send(rnd.randrange(500, 3000))
            for p, some in rows.items():
                broker.send(topic, some, partition=p)
            time.sleep(rnd.random() * 0.6)
        job.kill()
        kills += 1
    # A late time in each partition closes all windows.
    for p in range(12):
        broker.send(topic, [{"id": 0, "usr": "end", "ts": "2026-01-01 01:00:00"}], partition=p)
    job.start(2)

    def seen():
        return [json.loads(v) for _, v in broker.read(windows, 3)]

    wait_for(lambda: len(seen()) >= len(want), job, 90)

    def latest():
        return {json.loads(k)["usr"]: json.loads(v) for k, v in broker.read(totals, 3)}

    wait_for(lambda: latest().get("end", {}).get("n") == 12, job, 60)
    job.kill()
    got = seen()
    keys = [(r["usr"], r["at"]) for r in got]
    assert len(keys) == len(set(keys)), "a window came twice"
    seconds = {f"2026-01-01T00:{a // 60:02d}:{a % 60:02d}": a for a in range(3600)}
    assert {(r["usr"], seconds[r["at"][:19]]): (r["n"], r["s"]) for r in got} == want
    final = {u: (r["n"], r["s"]) for u, r in latest().items()}
    final.pop("end")
    assert final == sums and not broker.held(windows, 3)


def test_deletions_come_with_their_checkpoint(broker, orders, tmp_path):
    topic = broker.topic(2)
    job = tmp_path / "job.sql"
    job.write_text(table("o", "id BIGINT, usr VARCHAR, amount BIGINT", orders, broker, bounded="true")
                   + table("t", "usr VARCHAR, n BIGINT, PRIMARY KEY (usr) NOT ENFORCED", topic, broker)
                   + "INSERT INTO t SELECT usr, COUNT(*) FROM o GROUP BY usr HAVING COUNT(*) < 401;\n")
    run_clink("run", job, "--changes", "-p", 2, "--checkpoint-dir", tmp_path / "ck", "--checkpoint-interval-ms", 50)
    latest = {k: v for k, v in broker.read(topic, 2)}
    want = {u: n for u in {r["usr"] for r in ORDERS} if (n := sum(r["usr"] == u for r in ORDERS)) < 401}
    assert {json.loads(v)["usr"]: json.loads(v)["n"] for v in latest.values() if v} == want
    assert not os.listdir(tmp_path / "ck" / "write-ahead")


def exact_job(tmp_path, topic, broker, rows=50, **options):
    (tmp_path / "in.ndjson").write_text("".join(json.dumps({"id": i, "k": "x" * 10}) + "\n" for i in range(rows)))
    job = tmp_path / "job.sql"
    job.write_text(f"CREATE TABLE i (id BIGINT, k VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson');\n"
                   + table("s", "id BIGINT, k VARCHAR", topic, broker, **options) + "INSERT INTO s SELECT id, k FROM i;\n")
    return ["run", job, "--checkpoint-dir", tmp_path / "ck"]


def test_what_the_guarantee_is_is_said(broker, tmp_path):
    topic = broker.topic(1)
    r = run_clink(*exact_job(tmp_path, topic, broker))
    assert "s: exactly once: rows appear in a transaction when a checkpoint commits them" in r.err
    assert len(broker.read(topic, 1)) == 50
    other = tmp_path / "other"
    other.mkdir()
    r = run_clink(*exact_job(other, topic, broker, delivery="at_least_once"))
    assert "s: at least once" in r.err and len(broker.read(topic, 1)) == 100


def test_a_lost_token_is_an_error_and_not_a_second_time(broker, tmp_path):
    topic = broker.topic(1)
    args = exact_job(tmp_path, topic, broker, token_topic="tokens-of-one")
    r = run_clink(*args, env={"CLINK_FAULT": "commit.before_committed:1:kill"}, ok=False)
    assert r.code == -signal.SIGKILL and len(broker.read(topic, 1)) == 50
    for f in broker.admin.delete_topics(["tokens-of-one"]).values():
        f.result(30)
    r = run_clink(*args, ok=False)
    assert r.code == 1 and "does not know this job" in r.err, r.err
    assert len(broker.read(topic, 1)) == 50


def test_the_answer_to_the_first_token_is_lost(broker, tmp_path):
    """A start asks whether it is written, and by whom, before it takes the transactional id again."""
    topic = broker.topic(1)
    run_clink(*exact_job(tmp_path, topic, broker, token_topic="tokens-lost"), env={"CLINK_FAULT": "kafka.committed:1:error"})
    assert len(broker.read(topic, 1)) == 50


def test_a_sink_that_has_another_name_goes_on(broker, tmp_path):
    """What was prepared under the old name is committed under it, whether or not it was before."""
    topic = broker.topic(1)
    exact_job(tmp_path, topic, broker, rows=1500)
    job = tmp_path / "job.sql"
    script = job.read_text().replace("in.ndjson'", "in.ndjson', rate_limit='3000'")
    for n, (point, ordinal) in enumerate((("checkpoint.after_manifest", 2), ("kafka.committed", 3), ("commit.before_committed", 2))):
        args = ["run", job, "--checkpoint-dir", tmp_path / f"ck{n}", "--checkpoint-interval-ms", 50]
        job.write_text(script)
        r = run_clink(*args, env={"CLINK_FAULT": f"{point}:{ordinal}:kill"}, ok=False)
        assert r.code == -signal.SIGKILL, r.err
        job.write_text(script.replace("TABLE s ", "TABLE other ").replace("INTO s ", "INTO other "))
        run_clink(*args)
        assert len(broker.read(topic, 1)) == 1500 * (n + 1), point


def test_another_jobs_open_transaction_is_waited_for(broker, tmp_path):
    """What is behind it in the token topic cannot be seen until it ends; a start that did not wait would write again."""
    topic = broker.topic(1)
    args = exact_job(tmp_path, topic, broker, token_topic="tokens-shared")
    run_clink(*exact_job(tmp_path, topic, broker, token_topic="tokens-shared"), "--name", "first")  # makes the topic
    before = len(broker.read(topic, 1))
    other = Producer({"bootstrap.servers": broker.address, "transactional.id": "somebody", "transaction.timeout.ms": 4000})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce("tokens-shared", key="else", value="{}", partition=0)
    other.flush(30)
    r = run_clink(*[a if a != tmp_path / "ck" else tmp_path / "ck2" for a in args], env={"CLINK_FAULT": "commit.before_committed:1:kill"}, ok=False)
    assert r.code == -signal.SIGKILL, r.err
    again = run_clink(*[a if a != tmp_path / "ck" else tmp_path / "ck2" for a in args])
    assert again.code == 0 and len(broker.read(topic, 1)) == before + 50


@pytest.mark.parametrize("options, sentence", [
    ({"topic": "nothere"}, "has no topic nothere"),
    ({"brokers": "127.0.0.1:1", "timeout_ms": "700"}, "did not tell of topic"),
    ({"token_topic": "no good name"}, "no good name"),
    ({"delivery": "twice"}, "delivery"),
    ({"transaction_timeout_ms": "3600000"}, "transaction"),
    ({"transaction_timeout_ms": "5"}, "transaction_timeout_ms"),
    ({"properties.transactional.id": "mine"}, "the table's own options say it"),
    ({"key": "nothere"}, "no column of the table"),
    ({"key.format": "avro"}, "is one of json|raw"),
    ({"key.format": "raw"}, "the key has none"),
    ({"key": "id,id", "key.format": "raw"}, "has several"),
    ({"key": "at", "key.format": "raw"}, "CAST it AS VARCHAR"),
])
def test_what_cannot_be_written_is_said_at_once(broker, orders, tmp_path, options, sentence):
    o = {"brokers": broker.address, "topic": orders, **options}
    words = ", ".join(f"{k}='{v}'" for k, v in o.items())
    r = run_clink("run", "--name", "w", "--checkpoint-dir", tmp_path / "ck", "-e",
                  f"CREATE TABLE s (id BIGINT, at DATE) WITH (connector='kafka', {words}); INSERT INTO s VALUES (1, DATE '2026-01-01')", ok=False)
    assert r.code not in (0, 124) and sentence in r.err, r.err


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_record_that_is_too_large(broker, tmp_path, delivery):
    """Larger than what the client takes: at once. Larger than what the topic takes: when it is sent, and when the topic takes it the job
    goes on."""
    topic = broker.topic(1, max_message_bytes=20000)
    job = tmp_path / "job.sql"
    for size, limit, sentence in [(60000, "50000", "larger"), (30000, "1000000", "larger")]:
        (tmp_path / "in.ndjson").write_text(json.dumps({"k": "x" * size}) + "\n")
        job.write_text(f"CREATE TABLE i (k VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson');\n"
                       + table("s", "k VARCHAR", topic, broker, delivery=delivery, properties__message__max__bytes=limit)
                       + "INSERT INTO s SELECT k FROM i;\n")
        r = run_clink("run", job, "--name", f"j{size}", "--checkpoint-dir", tmp_path / f"ck{size}", ok=False)
        assert r.code == 1 and sentence in r.err and topic in r.err, r.err
    assert broker.read(topic, 1) == [] and not broker.held(topic, 1)
    broker.configure(topic, max_message_bytes=100000)
    run_clink("run", job, "--name", "j30000", "--checkpoint-dir", tmp_path / "ck30000")
    assert len(broker.read(topic, 1)) == 1


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize("on_error", ["skip", "dead_letter"])
def test_rows_too_large_for_the_topic_obey_on_error(broker, tmp_path, delivery, on_error):
    """The others go, in batches that the topic takes; what is set aside is what was to be written."""
    topic = broker.topic(1, max_message_bytes=20000)
    rows = [{"id": i, "k": "x" * (30000 if i % 50 == 7 else 100)} for i in range(3000)]
    (tmp_path / "in.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
    letters = {"dead_letter_table": "letters"} if on_error == "dead_letter" else {}
    sql = (f"CREATE TABLE letters (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/letters');\n"
           f"CREATE TABLE i (id BIGINT, k VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson');\n"
           + table("s", "id BIGINT, k VARCHAR", topic, broker, delivery=delivery, on_error=on_error, **letters) + "INSERT INTO s SELECT id, k FROM i;\n")
    (tmp_path / "job.sql").write_text(sql)
    r = run_clink("run", tmp_path / "job.sql", "-p", 2, "--checkpoint-dir", tmp_path / "ck")
    large = [row for row in rows if len(row["k"]) > 1000]
    got = [json.loads(v) for _, v in broker.read(topic, 1, wait=30)]
    assert sorted(got, key=lambda row: row["id"]) == [row for row in rows if row not in large]
    if on_error == "skip":
        assert f"{len(large)} records of s did not fit and were left out" in r.err, r.err
    else:
        aside = read_rows(tmp_path / "letters")
        assert sorted((json.loads(base64.b64decode(a["raw"])) for a in aside), key=lambda row: row["id"]) == large
        assert all(a["split"] == f"topic {topic}" and "is larger than the topic's max.message.bytes, 20000" in a["reason"] for a in aside)


def test_the_broker_is_away_while_results_are_due(tmp_path):
    """At the start: a sentence. In a run: it is waited for, and what is due comes once."""
    own = Broker(str(tmp_path / "kafka"))
    own.start()
    try:
        topic = own.topic(2)
        (tmp_path / "in").mkdir()
        job = Job(tmp_path, f"CREATE TABLE i (id BIGINT) WITH (connector='file', format='json', path='{tmp_path}/in', follow='true');\n"
                  + table("s", "id BIGINT", topic, own, timeout_ms="1000", transaction_timeout_ms="3000") + "INSERT INTO s SELECT id FROM i;\n")

        def put(n, at):
            (tmp_path / "in" / f"{at}.json").write_text("".join(json.dumps({"id": i}) + "\n" for i in range(at, at + n)))

        put(100, 0)
        job.start(2)
        wait_for(lambda: len(own.read(topic, 2)) == 100, job)
        own.stop()
        time.sleep(1)
        with open(tmp_path / "in" / "0.json", "a") as f:
            f.write("".join(json.dumps({"id": i}) + "\n" for i in range(100, 200)))
        wait_for(lambda: "; trying again" in job.log.read_text(), job)
        own.start()
        wait_for(lambda: len(own.read(topic, 2)) == 200, job)
        wait_for(lambda: f"topic {topic} takes rows again" in job.log.read_text(), job)
        job.kill()
        assert job.log.read_text().count("; trying again") == 1
        assert sorted(json.loads(v)["id"] for _, v in own.read(topic, 2)) == list(range(200))
        own.stop()
        job.start(2)
        assert job.proc.wait(60) == 1 and own.address in job.log.read_text().splitlines()[-1]
    finally:
        own.stop()


# ---- what is beside the value ----


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


# ---- who may ----


def sasl(broker, password):
    return {"brokers": broker.sasl_address, "properties.security.protocol": "SASL_PLAINTEXT", "properties.sasl.mechanism": "PLAIN",
            "properties.sasl.username": "clink", "properties.sasl.password": password}


def words_of(options):
    return ", ".join(f"{k}='{v}'" for k, v in options.items())


def test_who_has_the_password_reads_and_writes_exactly_once(broker, orders, tmp_path):
    topic = broker.topic(2)
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    job = tmp_path / "job.sql"
    job.write_text(f"CREATE TABLE o (id BIGINT) WITH (connector='kafka', topic='{orders}', bounded='true', {words_of(sasl(broker, '${env:CLINK_PW}'))});\n"
                   f"CREATE TABLE s (id BIGINT) WITH (connector='kafka', topic='{topic}', {words_of(sasl(broker, '${file:' + str(secret) + '}'))});\n"
                   "INSERT INTO s SELECT id FROM o WHERE id < 100;\n")
    run_clink("run", job, "--checkpoint-dir", tmp_path / "ck", env={"CLINK_PW": "secret"})
    assert sorted(json.loads(v)["id"] for _, v in broker.read(topic, 2)) == list(range(100))


@pytest.mark.parametrize("way", ["reading", "writing"])
def test_who_has_not_is_refused_with_a_sentence(broker, orders, tmp_path, way):
    words = words_of(sasl(broker, "hush-hush"))
    sql = (f"CREATE TABLE o (id BIGINT) WITH (connector='kafka', topic='{orders}', bounded='true', {words}); SELECT id FROM o" if way == "reading" else
           f"CREATE TABLE o (id BIGINT) WITH (connector='kafka', topic='{orders}', {words}); INSERT INTO o VALUES (1)")
    began = time.monotonic()
    r = run_clink("run", "--name", "j", "--checkpoint-dir", tmp_path / "ck", "-e", sql, ok=False)
    assert r.code == 1 and "uthentication" in r.err and broker.sasl_address in r.err and "hush-hush" not in r.err, r.err
    assert time.monotonic() - began < 8


def tls(broker, password="${env:CLINK_PW}", ca=None, mechanism="PLAIN"):
    return {"brokers": broker.tls_address, "properties.security.protocol": "SASL_SSL", "properties.sasl.mechanism": mechanism,
            "properties.sasl.username": "clink", "properties.sasl.password": password, "properties.ssl.ca.location": ca or broker.ca}


def test_topics_behind_tls_and_a_password_are_read_and_written_exactly_once(broker, orders, tmp_path):
    topic = broker.topic(2)
    job = tmp_path / "job.sql"
    job.write_text(f"CREATE TABLE o (id BIGINT) WITH (connector='kafka', topic='{orders}', bounded='true', {words_of(tls(broker))});\n"
                   f"CREATE TABLE s (id BIGINT) WITH (connector='kafka', topic='{topic}', {words_of(tls(broker))});\n"
                   "INSERT INTO s SELECT id FROM o WHERE id < 100;\n")
    run_clink("run", job, "--checkpoint-dir", tmp_path / "ck", env={"CLINK_PW": "secret"})
    assert sorted(json.loads(v)["id"] for _, v in broker.read(topic, 2)) == list(range(100))


@pytest.mark.parametrize("way", ["reading", "writing"])
@pytest.mark.parametrize("wrong,sentence", [("password", "uthentication"), ("authority", "certificate verify failed"), ("mechanism", "PLAIN")])
def test_tls_and_passwords_that_do_not_pass_are_a_sentence(broker, orders, tmp_path, way, wrong, sentence):
    """A wrong password; a broker that a stranger vouches for; a mechanism that the broker does not have, which names those it has."""
    stranger = tmp_path / "ca.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=stranger", "-keyout", tmp_path / "key", "-out", stranger],
                   check=True, capture_output=True)
    options = tls(broker, "hush-hush") if wrong == "password" else tls(broker, ca=stranger) if wrong == "authority" else tls(broker, mechanism="SCRAM-SHA-256")
    words = words_of(options)
    sql = (f"CREATE TABLE o (id BIGINT) WITH (connector='kafka', topic='{orders}', bounded='true', {words}); SELECT id FROM o" if way == "reading" else
           f"CREATE TABLE o (id BIGINT) WITH (connector='kafka', topic='{orders}', {words}); INSERT INTO o VALUES (1)")
    r = run_clink("run", "--name", "j", "--checkpoint-dir", tmp_path / "ck", "-e", sql, ok=False, env={"CLINK_PW": "secret"})
    assert r.code == 1 and sentence in r.err and broker.tls_address in r.err and "hush-hush" not in r.err and "secret" not in r.err, r.err


# ---- changes of rows ----


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
