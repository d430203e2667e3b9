"""Kafka topics as tables that are written, against a real broker: readers of what is committed see each row once, whatever dies."""
import base64
import json
import os
import random
import signal
import time

import pytest
from confluent_kafka import KafkaException, Producer
from conftest import read_rows, run_clink
from kafka_broker import Broker
from kafka_tables import AWAY_S, ORDERS, Job, broker, orders, table, wait_for  # noqa: F401

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))


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


def test_keys_go_where_kafkas_own_clients_send_them(broker, tmp_path):
    ours, theirs = broker.topic(7), broker.topic(7)
    keys = [f"key {i * 7919 % 1000}" for i in range(300)]
    (tmp_path / "in.ndjson").write_text("".join(json.dumps({"k": k}) + "\n" for k in keys))
    p = Producer({"bootstrap.servers": broker.address, "partitioner": "murmur2_random"})
    for k in keys:
        p.produce(theirs, "{}", key=k)
    assert p.flush(60) == 0
    run_clink("run", "-e", f"CREATE TABLE src (k VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson');\n"
              + table("dst", "k VARCHAR", ours, broker, key="k", key__format="raw") + "INSERT INTO dst SELECT k FROM src;")

    def places(topic):
        back = table("back", "x BIGINT, k VARCHAR METADATA FROM 'key', p INTEGER METADATA FROM 'partition'", topic, broker, bounded="true")
        return {(r["k"], r["p"]) for r in run_clink("run", "-e", back + "SELECT k, p FROM back").rows}

    assert places(ours) == places(theirs) and len({p for _, p in places(ours)}) == 7


def test_raw_keys_of_changes(broker, orders):
    """The latest record of a key is its row, a deletion one without a value, as with JSON."""
    topic = broker.topic(3)
    run_clink("run", "-p", 2, "-e", table("o", "id BIGINT, usr VARCHAR, amount BIGINT", orders, broker, bounded="true")
              + table("t", "usr VARCHAR, n BIGINT, PRIMARY KEY (usr) NOT ENFORCED", topic, broker, key__format="raw")
              + "INSERT INTO t SELECT usr, COUNT(*) FROM o GROUP BY usr HAVING COUNT(*) < 401;\n")
    latest = {k.decode(): v for k, v in broker.read(topic, 3)}
    want = {u: n for u in {r["usr"] for r in ORDERS} if (n := sum(r["usr"] == u for r in ORDERS)) < 401}
    assert {k: json.loads(v)["n"] for k, v in latest.items() if v} == want


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
    script = job.read_text()
    slow = script.replace("in.ndjson'", "in.ndjson', rate_limit='25'")  # a minute: it must not end before it is killed
    for n, (point, ordinal) in enumerate((("checkpoint.after_manifest", 2), ("kafka.committed", 3), ("commit.before_committed", 2))):
        args = ["run", job, "--checkpoint-dir", tmp_path / f"ck{n}", "--checkpoint-interval-ms", 50]
        job.write_text(slow)
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


def test_at_least_once_nothing_is_lost_whatever_is_killed(tmp_path):
    """Nor when the broker is: a checkpoint counts when the brokers have all that came before it."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    own = Broker(str(tmp_path / "kafka"))
    own.start()
    try:
        topic = own.topic(3)
        (tmp_path / "in.ndjson").write_text("".join(json.dumps({"id": i}) + "\n" for i in range(20000)))
        job = Job(tmp_path, f"CREATE TABLE i (id BIGINT) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson', rate_limit='10000', follow='true');\n"
                  + table("s", "id BIGINT", topic, own, delivery="at_least_once") + "INSERT INTO s SELECT id FROM i;\n")
        for life in range(4):
            job.start(rnd.choice([1, 2]), interval_ms=20)
            time.sleep(rnd.random() * 0.5)
            if life == 2:
                own.stop()
                time.sleep(rnd.random())
                own.start()
            job.kill()
        job.start(2)
        wait_for(lambda: {json.loads(v)["id"] for _, v in own.read(topic, 3)} == set(range(20000)), job, 120)
        job.kill()
    finally:
        own.stop()


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
        time.sleep(AWAY_S)
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
        assert job.proc.wait(60) == 1 and own.address in "".join(job.log.read_text().splitlines()[-3:])
    finally:
        own.stop()
