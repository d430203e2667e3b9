"""Who may read and write topics: SASL and TLS, against a real broker."""
import json
import subprocess
import time

import pytest
from conftest import run_clink
from kafka_tables import broker, orders  # noqa: F401


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
