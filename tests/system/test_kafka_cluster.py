"""A job of a cluster that reads a topic: records it cannot take suspend it with their offsets, and it goes on without them; over two workers a loss
costs nothing."""
import re

import pytest
from conftest import read_rows, run_clink
from kafka_tables import broker, table  # noqa: F401
from test_cluster import KEPT, cluster, until  # noqa: F401


@pytest.mark.parametrize("metadata", ["", ', "offset" BIGINT METADATA'], ids=["", "metadata"])
def test_a_row_is_known_by_its_offset(broker, metadata):  # noqa: F811
    topic = broker.topic(1)
    broker.send(topic, [{"id": i} for i in range(200)] + [{"id": -1}])
    sql = table("t", "id BIGINT" + metadata, topic, broker, bounded="true") + ("SELECT 10 / (id + 1), \"offset\" FROM t" if metadata else "SELECT 10 / (id + 1) FROM t")
    r = run_clink("run", "--set", "batch_rows=16", "-e", sql, ok=False)
    assert r.code and "the row is at offset 200 of " in r.err, r.err


@pytest.mark.parametrize("metadata", ["", ', "offset" BIGINT METADATA'], ids=["", "metadata"])
def test_a_job_goes_on_without_records(cluster, broker, metadata):  # noqa: F811
    topic = broker.topic(1)
    rows = [{"id": i} for i in range(300)]
    rows[100], rows[200] = {"id": "x"}, {"id": -1}
    broker.send(topic, rows)
    cluster.coordinator()
    cluster.worker("w1", 2)
    cluster.submit(table("t", "id BIGINT" + metadata, topic, broker, bounded="true")
                   + "CREATE TABLE o (id BIGINT, x BIGINT) WITH (connector='file', format='json', path='out');\n"
                   + "INSERT INTO o SELECT id, 10 / (id + 1) FROM t;", *KEPT, "--set", "batch_rows=16")
    for attempt, offset in enumerate((100, 200), 1):
        until("suspended", lambda: cluster.status(1)["status"] == "suspended" and cluster.status(1)["attempt"] == attempt)
        error = cluster.status(1)["error"]
        place = re.search("resume ID --skip-record '([^']*)'", error).group(1)
        assert place.endswith(f":{offset}"), error
        until("a slot is free", lambda: "no slot" not in cluster.ask("resume", 1, "--skip-record", place, ok=False).err)
    assert cluster.until_status(1, "finished", "failed")["status"] == "finished"
    assert sorted(r["id"] for r in read_rows(cluster.cwd / "out")) == [i for i in range(300) if i not in (100, 200)]


def test_a_killed_worker_costs_nothing(cluster, broker):  # noqa: F811
    topic = broker.topic(4)
    broker.send(topic, [{"id": i} for i in range(20000)])
    cluster.coordinator()
    for name in ("w1", "w2", "w3"):
        cluster.worker(name, 2)
    cluster.submit(table("t", "id BIGINT", topic, broker) + "CREATE TABLE o (id BIGINT) WITH (connector='file', format='json', path='out');\n"
                   + "INSERT INTO o SELECT id FROM t;", "-p", "4", *KEPT)
    victim = cluster.until_checkpoint(1)["subtasks"][0]["worker"]
    cluster.workers[victim].kill()
    until("a restart", lambda: cluster.status(1)["attempt"] > 1 and cluster.status(1)["status"] == "running")
    broker.send(topic, [{"id": i} for i in range(20000, 21000)])
    until("all rows", lambda: len(read_rows(cluster.cwd / "out")) >= 21000)
    cluster.ask("stop", 1)
    cluster.until_status(1, "finished", "failed")
    assert sorted(r["id"] for r in read_rows(cluster.cwd / "out")) == list(range(21000))
