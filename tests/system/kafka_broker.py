"""A Kafka broker of one node for tests, through tests/servers/kafka.sh."""
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic,
                                   ResourceType)
from conftest import TOP


class NoBroker(Exception):
    """This machine has none."""


PORTS = 4


def free_ports():
    """A port whose neighbours are free too, below those that outgoing connections take: it must be free again after a restart."""
    for _ in range(1000):
        port = random.randrange(15000, 32000)
        with contextlib.ExitStack() as stack:
            try:
                for i in range(PORTS):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port + i))
                return port
            except OSError:
                continue
    raise RuntimeError(f"no {PORTS} free ports side by side")


class Broker:
    def __init__(self, directory):
        self.dir, self.proc, self.names, self.started = directory, None, 0, False
        self.use_ports(free_ports())

    def start(self):
        """A first start that fails is tried again on other ports: between the look and the start somebody may have taken one."""
        for left in (2, 1, 0):
            why = self.start_once()
            if why is None:
                self.started = True
                return
            if self.started or left == 0:
                raise RuntimeError(f"the broker ended: {why}")
            shutil.rmtree(os.path.join(self.dir, "data"), ignore_errors=True)
            self.use_ports(free_ports())

    def start_once(self):
        """None, or why the broker ended."""
        self.proc = subprocess.Popen([os.path.join(TOP, "tests", "servers", "kafka.sh"), self.dir, str(self.port)],
                                     stderr=subprocess.PIPE, text=True)
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        end = time.monotonic() + 240
        while True:
            if self.proc.poll() is not None:
                reason = self.proc.stderr.read()
                if self.proc.returncode == 3:
                    raise NoBroker(f"no broker here: {reason}")
                return f"exit {self.proc.returncode}: {reason}{self.tail('format.log')}{self.tail('broker.log')}"
            try:
                self.admin.list_topics(timeout=1)
                return None
            except Exception:
                assert time.monotonic() < end, "the broker does not answer"

    def tail(self, name):
        path = os.path.join(self.dir, name)
        return f"\n{name}: " + open(path, errors="replace").read()[-2000:] if os.path.exists(path) else ""

    def use_ports(self, port):
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self.sasl_address = f"127.0.0.1:{port + 2}"
        self.tls_address = f"127.0.0.1:{port + 3}"
        self.ca = os.path.join(self.dir, "tls", "ca.pem")

    def stop(self, how=signal.SIGKILL):
        if self.proc:
            self.proc.send_signal(how)
            self.proc.wait()

    def topic(self, partitions, name=None, **config):
        self.names += 1
        name = name or f"t{self.names}"
        options = {k.replace("_", "."): str(v) for k, v in config.items()}
        for f in self.admin.create_topics([NewTopic(name, partitions, 1, config=options)]).values():
            f.result(30)
        self.wait_for_partitions(name, partitions)
        return name

    def wait_for_partitions(self, topic, count):
        """What the broker has promised, it tells of a moment later."""
        end = time.monotonic() + 30
        while len(self.admin.list_topics(topic, timeout=10).topics[topic].partitions) < count:
            assert time.monotonic() < end, f"{topic} does not come"
            time.sleep(0.01)

    def configure(self, topic, **config):
        entries = [ConfigEntry(k.replace("_", "."), str(v), incremental_operation=AlterConfigOpType.SET) for k, v in config.items()]
        for f in self.admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)]).values():
            f.result(30)

    def widen(self, topic, partitions):
        for f in self.admin.create_partitions([NewPartitions(topic, partitions)]).values():
            f.result(30)
        self.wait_for_partitions(topic, partitions)

    def send(self, topic, rows, partition=None, key=None, **more):
        p = Producer({"bootstrap.servers": self.address, "enable.idempotence": True})
        for r in rows:
            value = r if isinstance(r, (bytes, str)) or r is None else json.dumps(r)
            where = {} if partition is None else {"partition": partition}
            while True:
                try:
                    p.produce(topic, value, key=key(r) if key else None, **where, **more)
                    break
                except BufferError:
                    p.poll(0.1)
        assert p.flush(60) == 0

    def read(self, topic, partitions, wait=0):
        """All committed records, (key, value), in the order of each partition. wait: so many seconds for open transactions to end;
        0: what a reader sees now."""
        out = []
        c = Consumer({"bootstrap.servers": self.address, "group.id": "reader", "isolation.level": "read_committed",
                      "enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 10})
        ends = {p: self.end(topic, p) for p in range(partitions)} if wait else {}
        give_up = time.monotonic() + wait
        for p in range(partitions):
            c.assign([TopicPartition(topic, p, 0)])
            while True:
                m = c.poll(30)
                assert m is not None, f"{topic}, partition {p}: the broker does not answer"
                if not m.error():
                    out.append((m.key(), m.value()))
                elif m.error().name() != "_PARTITION_EOF":
                    raise RuntimeError(str(m.error()))
                elif m.offset() >= ends.get(p, 0):
                    break
                else:
                    assert time.monotonic() < give_up, f"{topic}, partition {p}: an open transaction holds readers at {m.offset()}"
                    c.seek(TopicPartition(topic, p, m.offset()))
                    time.sleep(0.05)
        c.close()
        return out

    def end(self, topic, partition):
        """Where the partition ends, open transactions counted."""
        c = Consumer({"bootstrap.servers": self.address, "group.id": "ends", "isolation.level": "read_uncommitted"})
        _, high = c.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
        c.close()
        return high

    def held(self, topic, partitions):
        """The partitions that an open transaction holds for readers of what is committed."""
        c = Consumer({"bootstrap.servers": self.address, "group.id": "stable", "isolation.level": "read_committed"})
        stable = [c.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in range(partitions)]
        c.close()
        return [p for p in range(partitions) if stable[p] < self.end(topic, p)]
