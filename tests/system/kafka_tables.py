"""What tests of Kafka tables share: a broker, a table's DDL, a topic of orders, a job that can be killed."""
import os
import signal
import subprocess
import time

import pytest
from conftest import CLINK
from kafka_broker import Broker, NoBroker


AWAY_S = 65 if os.environ.get("CLINK_LONG") else 1  # how long a server is away


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
    options.setdefault("timeout_ms", "60000")  # a broker of a busy machine
    more = "".join(f", {k.replace('__', '.')}='{v}'" for k, v in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH (connector='kafka', brokers='{broker.address}', topic='{topic}'{more});\n"


ORDERS = [{"id": i, "usr": f"u{i * 7919 % 50}", "amount": i % 13} for i in range(20000)]


@pytest.fixture(scope="module")
def orders(broker):
    topic = broker.topic(12)
    broker.send(topic, ORDERS, key=lambda r: r["usr"])
    return topic


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
