"""Records and topics that are not as they should be, against a real broker: each record is judged by itself, and what is gone is said."""
import csv
import io
import json
import os
import random
import subprocess
import time

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from conftest import CLINK, read_rows, run_clink
from kafka_tables import broker, table  # noqa: F401

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
LETTERS = "CREATE TABLE d (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='{}');\n"


class Job:
    """A job that copies the column id into files, and can be killed and go on."""

    def __init__(self, tmp_path, broker, topic, **options):  # noqa: F811
        self.dir, self.out, self.log, self.proc = tmp_path / "ck", tmp_path / "out", tmp_path / "log", None
        self.sql = tmp_path / "job.sql"
        self.sql.write_text(table("src", "id BIGINT", topic, broker, **options)
                            + f"CREATE TABLE o (id BIGINT) WITH (connector='file', format='json', path='{self.out}');\nINSERT INTO o SELECT id FROM src;\n")

    def start(self):
        self.proc = subprocess.Popen([CLINK, "run", str(self.sql), "--checkpoint-dir", str(self.dir), "--checkpoint-interval-ms", "50"],
                                     stderr=open(self.log, "a"), stdin=subprocess.DEVNULL)

    def wait_for(self, count):
        end = time.monotonic() + 120
        while len(self.ids()) < count:
            assert self.proc.poll() is None, self.log.read_text()
            assert time.monotonic() < end, f"{len(self.ids())} of {count}: " + self.log.read_text()
            time.sleep(0.05)

    def position(self):
        names = sorted(self.dir.glob("checkpoint-*.json"), key=lambda p: int(p.stem.split("-")[1]))
        return names[-1].name if names else None

    def wait_for_checkpoints(self, more):
        """So many that begin after now."""
        end, seen, last = time.monotonic() + 120, 0, self.position()
        while seen < more:
            assert self.proc.poll() is None and time.monotonic() < end, self.log.read_text()
            now = self.position()
            seen, last = seen + (now != last), now
            time.sleep(0.01)

    def ids(self):
        return sorted(r["id"] for r in read_rows(self.out))

    def kill(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()


def fields_of(text):
    """What Python's csv makes of a record by itself; None: it is not one record. Python takes a quote inside an unquoted field."""
    if text == '5,f"g':
        return None
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def test_each_record_of_csv_is_judged_by_itself(broker, tmp_path):  # noqa: F811
    """A quote that is never closed takes nothing of the records behind it with it, and a line break makes no second row."""
    print(f"CLINK_SEED={SEED}")
    rnd = random.Random(SEED)
    good = ['1,a', '2,"b"', '3,"c""d"', '4,"e\nf"', '5,"g,h"', '6,', '7,"i"\r\n', '8,j\n', '9,"\n\n"']
    bad = ['"', '1,"a', '2,b\n3,c', '4,"d"e', '5,f"g', '6', '"7', '8,"\n', ',"', '9,a,b', '', ' ', '10,"a"\n11,"b"']
    records = [rnd.choice(good if rnd.random() < 0.7 else bad) for _ in range(5000)]
    want = [f for f in map(fields_of, (r.rstrip("\r\n") for r in records)) if f and len(f) == 2 and f[0]]
    assert 2000 < len(want) < 4500
    topic = broker.topic(1)
    broker.send(topic, records)
    dead = tmp_path / "dead"
    sql = (LETTERS.format(dead) + table("t", "id BIGINT, v VARCHAR", topic, broker, bounded="true", format="csv", on_error="dead_letter", dead_letter_table="d")
           + "SELECT id, v FROM t;\n")
    for rows in ("1", "1000"):
        got = run_clink("run", "--set", f"batch_rows={rows}", "-e", sql).rows
        assert [(r["id"], r["v"] or "") for r in got] == [(int(i), v) for i, v in want]
    letters = sorted(r["offset"] for r in read_rows(dead))
    assert letters == sorted(2 * [i for i, r in enumerate(records) if not ((f := fields_of(r.rstrip("\r\n"))) and len(f) == 2 and f[0])])


def test_an_empty_record_is_no_row_of_a_table_with_one_column(broker):  # noqa: F811
    topic = broker.topic(1)
    broker.send(topic, ["a", "", " ", "\n", "b", '""', "c\n"])
    for wanted in ("fail", "skip"):
        r = run_clink("run", "-e", table("t", "v VARCHAR", topic, broker, bounded="true", format="csv", on_error=wanted) + "SELECT v FROM t", ok=wanted == "skip")
        if wanted == "fail":
            assert r.code == 1 and "offset 1: the record is empty" in r.err
        else:
            assert [row["v"] for row in r.rows] == ["a", "b", "", "c"] and "3 records of t did not fit" in r.err


@pytest.mark.parametrize("format, value", [("json", '{"id":%d}'), ("csv", "%d")])
def test_a_key_that_is_no_text_obeys_on_error(broker, tmp_path, format, value):  # noqa: F811
    topic, dead = broker.topic(1), tmp_path / "dead"
    for i, key in enumerate([b"a", b"\xff\x00", None, b"", b"\xc3\xa9", b"\xed\xa0\x80"]):
        broker.send(topic, [value % i], key=lambda _, key=key: key)
    how = {"bounded": "true", "format": format}
    columns = "id BIGINT, k VARCHAR METADATA FROM 'key'"
    r = run_clink("run", "-e", table("t", columns, topic, broker, **how) + "SELECT id, k FROM t", ok=False)
    assert r.code == 1 and "offset 1: the key is no UTF-8" in r.err and "BYTES" in r.err
    # What is left out does not depend on the query.
    for select in ("id, k", "id"):
        sql = LETTERS.format(dead) + table("t", columns, topic, broker, on_error="dead_letter", dead_letter_table="d", **how) + f"SELECT {select} FROM t;\n"
        got = run_clink("run", "-e", sql).rows
        assert [r["id"] for r in got] == [0, 2, 3, 4]
        if select != "id":
            assert [r["k"] for r in got] == ["a", None, "", "é"]
    assert sorted(r["offset"] for r in read_rows(dead)) == [1, 1, 5, 5]
    r = run_clink("run", "-e", table("t", "id BIGINT, k BYTES METADATA FROM 'key'", topic, broker, **how) + "SELECT id FROM t")
    assert len(r.rows) == 6


def test_large_records_are_read_by_a_table_that_says_how_large_they_are(broker):  # noqa: F811
    """The option that a table needs where it is written is no trouble where it is read; an answer that the client does not take is said."""
    topic = broker.topic(1, max_message_bytes=10000000)
    p = Producer({"bootstrap.servers": broker.address, "message.max.bytes": 10000000})
    p.produce(topic, json.dumps({"id": 1, "v": "x" * 6000000}))
    assert p.flush(120) == 0
    sql = table("t", "id BIGINT, v VARCHAR", topic, broker, bounded="true", properties__message__max__bytes="10000000") + "SELECT CHAR_LENGTH(v) AS n FROM t"
    assert run_clink("run", "-e", sql).rows == [{"n": 6000000}]
    small = {f"properties__{k}": v for k, v in (("fetch__max__bytes", "1000000"), ("receive__message__max__bytes", "1000512"))}
    r = run_clink("run", "-e", table("t", "id BIGINT", topic, broker, bounded="true", **small) + "SELECT id FROM t", ok=False)
    assert r.code == 1 and "increase receive.message.max.bytes" in r.err, r.err


@pytest.mark.parametrize("behind", ["tombstones", "marker", "aborted"])
def test_what_is_no_row_may_be_gone_when_the_job_goes_on(broker, tmp_path, behind):  # noqa: F811
    """Retention removed what stands behind the last row; nothing of it was to be read, so nothing is missing."""
    topic = broker.topic(1)
    p = Producer({"bootstrap.servers": broker.address, "transactional.id": f"behind-{topic}"})
    p.init_transactions(60)
    p.begin_transaction()
    p.produce(topic, '{"id":1}')
    p.commit_transaction(60)
    if behind == "tombstones":
        broker.send(topic, [None] * 20, key=lambda _: "k")
    elif behind == "aborted":
        p.begin_transaction()
        p.produce(topic, '{"id":666}')
        p.flush(60)
        p.abort_transaction(60)
    job = Job(tmp_path, broker, topic)
    try:
        job.start()
        job.wait_for(1)
        job.wait_for_checkpoints(3)
        job.kill()
        for f in broker.admin.delete_records([TopicPartition(topic, 0, broker.end(topic, 0))]).values():
            f.result(60)
        broker.send(topic, [{"id": 2}])
        job.start()
        job.wait_for(2)
        assert job.ids() == [1, 2]
    finally:
        job.kill()


def test_records_that_are_gone_unread_end_the_job(broker, tmp_path):  # noqa: F811
    topic = broker.topic(1)
    broker.send(topic, [{"id": i} for i in range(10)])
    job = Job(tmp_path, broker, topic)
    try:
        job.start()
        job.wait_for(10)
        job.wait_for_checkpoints(2)
        job.kill()
        broker.send(topic, [{"id": i} for i in range(10, 20)])
        for f in broker.admin.delete_records([TopicPartition(topic, 0, 15)]).values():
            f.result(60)
        job.start()
        assert job.proc.wait(120) == 1 and "records it had not read are gone" in job.log.read_text()
    finally:
        job.kill()


@pytest.mark.parametrize("discover_ms", ["100", "0"])
def test_a_topic_that_is_deleted_ends_the_job(broker, tmp_path, discover_ms):  # noqa: F811
    topic = broker.topic(2)
    broker.send(topic, [{"id": i} for i in range(100)])
    job = Job(tmp_path, broker, topic, discover_ms=discover_ms, properties__topic__metadata__refresh__interval__ms="500")
    try:
        job.start()
        job.wait_for(100)
        for f in broker.admin.delete_topics([topic]).values():
            f.result(60)
        assert job.proc.wait(120) == 1
        said = job.log.read_text()
        assert f"has no topic {topic}" in said or f"{topic} [" in said, said
    finally:
        job.kill()


@pytest.mark.parametrize("running", [False, True])
def test_a_topic_made_anew_with_fewer_records_is_another(broker, tmp_path, running):  # noqa: F811
    """The place the job has is behind its end: nothing is read as if it went on."""
    topic = broker.topic(1)
    broker.send(topic, [{"id": i} for i in range(100)])
    job = Job(tmp_path, broker, topic, discover_ms="100", properties__topic__metadata__refresh__interval__ms="500")
    try:
        job.start()
        job.wait_for(100)
        job.wait_for_checkpoints(2)
        if not running:
            job.kill()
        for f in broker.admin.delete_topics([topic]).values():
            f.result(60)
        if not running:
            while topic in broker.admin.list_topics(timeout=30).topics:
                time.sleep(0.05)
            broker.topic(1, name=topic)
            broker.send(topic, [{"id": 1000}])
            job.start()
        else:  # as soon as it lets itself be made again
            while True:
                try:
                    broker.topic(1, name=topic)
                    break
                except KafkaException as e:
                    assert e.args[0].name() == "TOPIC_ALREADY_EXISTS", e
            broker.send(topic, [{"id": 1000}])
        assert job.proc.wait(120) == 1
        said = job.log.read_text()
        assert "the topic was made anew under its name" in said or (running and (f"has no topic {topic}" in said or f"{topic} [" in said)), said
        assert 1000 not in job.ids()
    finally:
        job.kill()


def test_a_job_over_a_topic_that_is_gone_can_be_stopped(broker, tmp_path):  # noqa: F811
    topic = broker.topic(2)
    broker.send(topic, [{"id": i} for i in range(100)])
    job = Job(tmp_path, broker, topic, discover_ms="3600000")
    try:
        job.start()
        job.wait_for(100)
        for f in broker.admin.delete_topics([topic]).values():
            f.result(60)
        job.proc.terminate()
        job.proc.wait(120)
    finally:
        job.kill()
