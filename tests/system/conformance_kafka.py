"""Kafka topics in the conformance suite (conformance.py)."""
import json
import os

import conformance
from kafka_broker import Broker, NoBroker

PARTITIONS = 3


class KafkaSink(conformance.Sink):
    title = "kafka"
    points = ("kafka.begun", "kafka.sent", "kafka.committed")
    lost = ("kafka.committed", "commit.after")
    fences = True

    def __init__(self):
        self.broker, self.topics = None, {}

    def start(self, where):
        self.broker = Broker(os.path.join(where, "broker"))
        try:
            self.broker.start()
        except NoBroker as e:
            raise conformance.Missing(str(e)) from e

    def stop(self):
        if self.broker:
            self.broker.stop()

    def restart(self):
        self.broker.stop()
        self.broker.start()
        return True

    def table(self, cell):
        self.topics[cell.number] = self.broker.topic(PARTITIONS)
        return (f"CREATE TABLE snk (id BIGINT, k VARCHAR) WITH (connector='kafka', brokers='{self.broker.address}', "
                f"topic='{self.topics[cell.number]}', key='k', timeout_ms='120000')")

    def rows(self, cell):
        return [(r["id"], r["k"]) for r in (json.loads(v) for _, v in self.broker.read(self.topics[cell.number], PARTITIONS))]

    def left(self, cell):
        folder = os.path.join(cell.ck, "write-ahead")
        files = os.listdir(folder) if os.path.isdir(folder) else []
        return files + [f"partition {p} is held" for p in self.broker.held(self.topics[cell.number], PARTITIONS)]
