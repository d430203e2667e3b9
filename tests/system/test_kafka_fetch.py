"""Who fetches: clink itself from brokers that are spoken to in the clear, the client library where a table sets properties of it, or what came
is not what clink reads. Whoever it is, and wherever one takes over from the other, each record is read once and whole."""
import json
import os
import random
import subprocess
import time

import pytest
from confluent_kafka import Producer
from conftest import CLINK, run_clink
from kafka_tables import broker, table  # noqa: F401

SEED = int(os.environ.get("CLINK_SEED", random.randrange(1 << 30)))
COLUMNS = ("id BIGINT, t VARCHAR, k VARCHAR METADATA FROM 'key', h MAP<VARCHAR, VARCHAR> METADATA FROM 'headers', ms BIGINT METADATA FROM 'timestamp', "
           "part INTEGER METADATA FROM 'partition', off BIGINT METADATA FROM 'offset'")
LIBRARY = {"properties.client.id": "by-the-library"}
PARTITIONS = 3
HEADERS = ([], [("a", b"1")], [("a", b""), ("b", None), ("a", "ü".encode())])


def write(broker, topic, rng, codec, first, count, transaction=None):  # noqa: F811
    """Records of the ids from `first` on, some of them tombstones: what a reader is to see of them, by id. transaction: commit or abort."""
    config = {"bootstrap.servers": broker.address, "compression.type": codec, "linger.ms": rng.choice((0, 5, 50)),
              "batch.size": rng.choice((1000, 20000, 1000000))}
    seen, failed = {}, []
    p = Producer({**config, "transactional.id": f"{topic}-{first}"} if transaction else config)
    if transaction:
        p.init_transactions(60)
        p.begin_transaction()
    for i in range(first, first + count):
        size = rng.choice((0, 1, 30, 30, 30, 300, 300000 if rng.random() < 0.02 else 3000))
        row = {"id": i, "t": rng.choice("abc") * size if rng.random() < 0.5 else rng.randbytes(size // 2).hex()}
        key, headers, ms = rng.choice((None, "", f"k{i}")), rng.choice(HEADERS), int(time.time() * 1000) - rng.randrange(1 << 26)
        gone, partition = rng.random() < 0.05, rng.randrange(PARTITIONS)
        p.produce(topic, None if gone else json.dumps(row), key=key, headers=headers, timestamp=ms, partition=partition,
                  on_delivery=lambda e, m: e and failed.append(e))
        if not gone and transaction != "abort":
            seen[i] = {**row, "k": key, "hn": len(headers), "ms": ms, "part": partition}
    assert p.flush(120) == 0 and not failed, failed
    if transaction:
        {"commit": p.commit_transaction, "abort": p.abort_transaction}[transaction](60)
    return seen


def read(broker, topic, tmp_path, **options):  # noqa: F811
    job = tmp_path / "read.sql"
    job.write_text(table("src", COLUMNS, topic, broker, bounded="true", **options)
                   + "SELECT id, t, k, h, CARDINALITY(h) AS hn, ms, part, off FROM src;\n")
    return [json.loads(line) for line in run_clink("run", job, "--format", "ndjson", timeout=300).out.splitlines()]


# What is written one after the other: codec, and how its transaction ends. The library takes over at what has * here.
WAYS = {
    "none": [("none", None)] * 3,
    "gzip": [("gzip", None)] * 2,
    "lz4": [("lz4", None)] * 3,
    "zstd": [("zstd", None)] * 2,
    "all": [("none", None), ("gzip", "commit"), ("lz4", None), ("zstd", "commit"), ("none", None)],
    "snappy": [("lz4", None), ("snappy", None), ("lz4", None)],  # *
    "aborted": [("lz4", "commit"), ("none", "abort"), ("lz4", None), ("zstd", "abort"), ("gzip", "commit")],  # *
}


@pytest.mark.parametrize("way", WAYS)
def test_all_is_read_once_whoever_fetches(broker, tmp_path, way):  # noqa: F811
    rng = random.Random(f"{SEED} {way}")
    topic, want, first = broker.topic(PARTITIONS), {}, 0
    for codec, transaction in WAYS[way]:
        want.update(write(broker, topic, rng, codec, first, 400, transaction))
        first += 400
    ours, theirs = read(broker, topic, tmp_path), read(broker, topic, tmp_path, **LIBRARY)
    assert sorted(r["id"] for r in ours) == sorted(want), SEED
    for r in ours:
        assert {c: v for c, v in r.items() if c not in ("h", "off")} == want[r["id"]], SEED
    by_id = {r["id"]: r for r in theirs}
    assert len(by_id) == len(theirs) and all(by_id[r["id"]] == r for r in ours), SEED  # headers and offsets, too
    for part in range(PARTITIONS):
        offsets = [r["off"] for r in ours if r["part"] == part]
        assert offsets == sorted(set(offsets)), SEED


def threads(pid):
    names = set()
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            names.add(open(f"/proc/{pid}/task/{task}/comm").read().strip())
        except OSError:
            pass  # it has ended
    return names


@pytest.mark.parametrize("options,ours", [({}, True), (LIBRARY, False)])
def test_properties_of_the_library_are_for_the_library(broker, tmp_path, options, ours):  # noqa: F811
    topic = broker.topic(1)
    broker.send(topic, [{"id": 1}])
    job = tmp_path / "job.sql"
    job.write_text(table("src", "id BIGINT", topic, broker, **options) + "SELECT id FROM src;\n")
    with open(tmp_path / "out", "w") as out:
        p = subprocess.Popen([CLINK, "run", str(job), "--format", "ndjson"], stdout=out, stderr=open(tmp_path / "log", "w"), stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while not (tmp_path / "out").read_text():
            assert p.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.05)
        assert ("clink-kafka" in threads(p.pid)) == ours
    finally:
        p.kill()
        p.wait()
