"""Tables behind HTTP: rows looked up in a server that fails, delays and resets, and rows sent to one, each at least once."""
import base64
import collections
import http.server
import json
import os
import random
import socketserver
import struct
import socket
import threading
import time
import urllib.parse

import pytest
from conftest import read_rows, run_clink
from kafka_tables import Job, wait_for


class Server:
    """answer(method, path, headers, body) gives (status, body[, headers]), "reset" or "hang"; requests are kept in `seen`."""

    def __init__(self, answer):
        self.make, self.seen, self.lock, self.under_way, self.most = answer, [], threading.Lock(), 0, 0

    def __enter__(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with outer.lock:
                    outer.seen.append((self.command, self.path, dict(self.headers), body))
                    outer.under_way += 1
                    outer.most = max(outer.most, outer.under_way)
                    got = outer.make(self.command, self.path, self.headers, body)
                try:
                    self.reply(got)
                finally:
                    with outer.lock:
                        outer.under_way -= 1

            def reply(self, got):
                if callable(got):
                    got = got()
                if got == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    self.close_connection = True
                    return
                status, text, *more = got
                text = text if isinstance(text, bytes) else json.dumps(text).encode()
                self.send_response(status)
                for k, v in (more[0] if more else {}).items():
                    self.send_header(k, v)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = one

            def log_message(self, *args):
                pass

        class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *args):
                pass

        self.server = Threads(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def orders(tmp_path, rows):
    (tmp_path / "orders.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return f"CREATE TABLE o (n BIGINT, usr VARCHAR) WITH (connector='file', path='{tmp_path}/orders.ndjson');\n"


def http_table(name, columns, url, **options):
    more = "".join(f", {k.replace('__', '.')}='{v}'" for k, v in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH (connector='http', url='{url}'{more});\n"


JOIN = "SELECT n, c.name, c.score FROM o JOIN c FOR SYSTEM_TIME AS OF PROCTIME() ON o.usr = c.usr"


def customer(usr):
    return {"name": f"name of {usr}", "score": int(usr[1:]) * 1000000007, "more": [1, {"x": None}]}


@pytest.mark.parametrize("p", [1, 3])
def test_rows_are_looked_up_whatever_the_server_does(tmp_path, p):
    """A third of the first tries fail: reset, 503, 429. Each user is asked for once per cache; what is not there joins with nothing."""
    failing = random.Random(7)
    tried = collections.Counter()

    def answer(method, path, headers, body):
        usr = urllib.parse.unquote(path.split("/")[-1])
        tried[usr] += 1
        if tried[usr] == 1 and failing.random() < 0.3:
            return failing.choice(["reset", (503, "later"), (429, "slow down")])
        if int(usr[1:].rstrip("ä/ ?")) % 10 == 9:
            return 404, {"error": "no such user"}
        return 200, customer(usr.rstrip("ä/ ?"))

    rows = [{"n": i, "usr": f"u{i * 31 % 97}" + ("ä/ ?" if i % 2 else "")} for i in range(3000)]
    with Server(answer) as s:
        sql = orders(tmp_path, rows) + http_table("c", "usr VARCHAR NOT NULL, name VARCHAR, score BIGINT", s.url + "/users/{usr}", retry_pause_ms="10",
                                                  lookup__cache_ttl_ms="600000")
        got = run_clink("run", "-p", p, "-e", sql + JOIN).rows
        known = [(r["n"], customer(r["usr"].rstrip("ä/ ?"))) for r in rows if int(r["usr"][1:].rstrip("ä/ ?")) % 10 != 9]
        assert sorted((r["n"], r["name"], r["score"]) for r in got) == [(n, c["name"], c["score"]) for n, c in known]
        once = len({r["usr"] for r in rows})
        again = sum(n - 1 for n in tried.values())
        assert len(s.seen) <= (once + again) and s.most > 1, (len(s.seen), once, s.most)
        left = run_clink("run", "-e", sql + JOIN.replace(" JOIN", " LEFT JOIN")).rows
        assert len(left) == len(rows) and sum(r["name"] is None for r in left) == len(rows) - len(known)


def test_an_answer_may_have_many_rows_or_none(tmp_path):
    def answer(method, path, headers, body):
        n = int(path.split("n=")[1])
        return (204, b"") if n == 0 else (200, [{"k": k, "price": 0.1, "big": 12345678901234567890123} for k in range(n)])

    rows = [{"n": n, "usr": ""} for n in (0, 1, 5000, 3)]
    with Server(answer) as s:
        sql = orders(tmp_path, rows) + http_table("c", "n BIGINT, k INTEGER, price DECIMAL(30,20), big DECIMAL(38,0)", s.url + "/items?n={n}")
        got = run_clink("run", "-p", 1, "-e", sql + "SELECT o.n, c.n AS m, k, price, big FROM o JOIN c FOR SYSTEM_TIME AS OF PROCTIME() ON o.n = c.n").out
        lines = got.splitlines()
        assert len(lines) == 5004 and lines[0] == '{"n":1,"m":1,"k":0,"price":0.10000000000000000000,"big":12345678901234567890123}', lines[0]


def test_what_is_wrong_with_a_lookup_is_a_sentence(tmp_path):
    state = {}
    o = orders(tmp_path, [{"n": 1, "usr": "u1"}])

    def fails(url, columns="usr VARCHAR, name VARCHAR, score BIGINT", query=JOIN, **options):
        return run_clink("run", "-e", o + http_table("c", columns, url, retries="1", retry_pause_ms="1", **options) + query, ok=False).err

    with Server(lambda *a: state["answer"]) as s:
        url = s.url + "/users/{usr}"
        state["answer"] = (500, {"message": "on fire"})
        assert 'table "c": GET ' + s.url + '/users/u1: the answer is 500 ({"message": "on fire"}), after 2 tries' in fails(url)
        state["answer"] = (401, "who are you")
        assert "the answer is 401" in fails(url) and len(s.seen) == 3  # which is not tried again
        state["answer"] = (200, b"<html>")
        assert "the answer is no JSON object and no array of them" in fails(url)
        state["answer"] = (200, {"name": 5, "score": "x"})
        assert 'an answer does not fit: "x" is not a BIGINT, column score' in fails(url), fails(url)
        skipped = run_clink("run", "-e", o + http_table("c", "usr VARCHAR, name VARCHAR, score BIGINT", url, on_error="skip") + JOIN)
        assert skipped.rows == [] and "1 record of c did not fit and was left out" in skipped.err
        state["answer"] = (302, b"")
        assert "the answer is 302, which points elsewhere" in fails(url)
        state["answer"] = lambda: time.sleep(3) or (200, {})
        assert "no answer: " in (t := fails(url, timeout_ms="200")) and "after 2 tries" in t, t
        state["answer"] = (200, {"name": "n", "score": 1})
        two = JOIN + " AND o.n = c.score"
        assert "rows are looked up by \"score\", and option 'url' has no {score}" in fails(url, query=two)
        assert "option 'url' has {nobody}, which is no column of the table" in fails(s.url + "/{nobody}")
        assert "in which a brace has no other one" in fails(s.url + "/{usr")
        assert "which the join does not give" in fails(s.url + "/{usr}/{name}")
        assert "says in the address who we are" in (t := fails("http://ann:hush-hush@localhost/{usr}")) and "hush-hush" not in t.split("CREATE")[0].split("\n")[0], t
        assert "rows are looked up, not read one after the other" in fails(url, query="SELECT * FROM c")
        assert "must be '${env:NAME}' or '${file:PATH}'" in fails(url, headers__Authorization="Bearer x")
    assert "no answer: " in fails(url) and "Connection refused" in fails(url) or "Could not connect" in fails(url) or "Failed to connect" in fails(url)


def test_who_we_are_is_said_by_secrets(tmp_path):
    o = orders(tmp_path, [{"n": 1, "usr": "u1"}])
    with Server(lambda *a: (200, {"name": "n", "score": 1})) as s:
        (tmp_path / "key").write_text("k-e-y\n")
        ask = lambda **options: run_clink("run", "-e", o + http_table("c", "usr VARCHAR, name VARCHAR, score BIGINT", s.url + "/{usr}", **options) + JOIN,
                                          env={**os.environ, "TOKEN": "to-ken", "PASSWORD": "pass:word"}).rows
        assert ask(token="${env:TOKEN}") == [{"n": 1, "name": "n", "score": 1}]
        ask(user="ann", password="${env:PASSWORD}", headers__x_api_key="${file:" + str(tmp_path / "key") + "}".replace("_", "-"))
        first, second = ({k.lower(): v for k, v in h.items()} for _, _, h, _ in s.seen)
        assert first["authorization"] == "Bearer to-ken"
        assert second["authorization"] == "Basic " + base64.b64encode(b"ann:pass:word").decode()
        assert "k-e-y" in (second.get("x.api.key"), second.get("x-api-key"), second.get("x_api_key"))


# ---- webhooks ----

ROWS = [{"n": i, "usr": f"u{i % 97}"} for i in range(2000)]


@pytest.mark.parametrize("rows_per_request", [1, 7])
def test_rows_are_sent_whatever_the_server_does(tmp_path, rows_per_request):
    """What is answered with an error or not at all comes again, with the same key; nothing is lost and nobody waits for the others."""
    rnd, tries, taken = random.Random(3), collections.Counter(), {}

    def answer(method, path, headers, body):
        key = headers["Idempotency-Key"]
        tries[key] += 1
        if tries[key] == 1 and rnd.random() < 0.1:
            return rnd.choice(["reset", (500, "no"), (503, "later", {"Retry-After": "0"})])
        assert taken.setdefault(key, body) == body
        return ("reset" if tries[key] == 1 and rnd.random() < 0.05 else (202, b""))  # the answer to what is taken may be lost

    with Server(answer) as s:
        sql = orders(tmp_path, ROWS) + http_table("hook", "n BIGINT, usr VARCHAR", s.url + "/in", rows_per_request=rows_per_request, retry_pause_ms="5",
                                                  in_flight="8", headers__x_source="clink") + "INSERT INTO hook SELECT n, usr FROM o;\n"
        run_clink("run", "-p", 1, "-e", sql)
        sent = [json.loads(b) for b in taken.values()]
        rows = sent if rows_per_request == 1 else [r for b in sent for r in b]
        assert sorted(rows, key=lambda r: r["n"]) == ROWS
        assert 1 < s.most <= 8 and {m for m, _, _, _ in s.seen} == {"POST"}
        assert all("x-source" in {k.lower().replace("_", "-") for k in h} for _, _, h, _ in s.seen[:10])


def test_rows_have_an_address_of_their_own(tmp_path):
    with Server(lambda *a: (200, b"")) as s:
        sql = orders(tmp_path, ROWS[:5]) + http_table("hook", "n BIGINT, usr VARCHAR", s.url + "/users/{usr}/{n}", method="put") + "INSERT INTO hook SELECT n, usr FROM o;\n"
        run_clink("run", "-e", sql)
        assert sorted((m, p, json.loads(b)) for m, p, _, b in s.seen) == [("PUT", f"/users/u{i}/{i}", ROWS[i]) for i in range(5)]
        refused = run_clink("run", "-e", sql.replace("method='put'", "rows_per_request='2'"), ok=False).err
        assert "option 'url' has values of a row in it" in refused, refused


@pytest.mark.parametrize("batch_rows", [1, 64, 4096])
def test_rows_that_change_are_put_and_deleted(tmp_path, batch_rows):
    """What the service has at the end is the result, though requests are answered in any order, lost and repeated: those of one key follow
    each other. What is deleted twice is not there."""
    rnd, kept, lost, lock = random.Random(5), {}, collections.Counter(), threading.Lock()
    rows = [{"k": f"k/{rnd.randrange(40)}", "v": rnd.choice([-1, 1])} for _ in range(3000)]
    under_way = collections.Counter()

    def answer(method, path, headers, body):
        assert method in ("PUT", "DELETE") and (method == "PUT" or not body)
        under_way[path] += 1
        assert under_way[path] == 1, "two requests of one key at once"

        def later():  # outside of the server's lock
            time.sleep(rnd.random() / 300)
            with lock:
                under_way[path] -= 1
                had = kept.pop(path, None) if method == "DELETE" else kept.update({path: json.loads(body)})
                lost[headers["Idempotency-Key"]] += 1
                if lost[headers["Idempotency-Key"]] == 1 and rnd.random() < 0.05:
                    return (503, b"", {"Retry-After": "0"})
                return (404, b"") if method == "DELETE" and had is None else (204, b"")
        return later

    (tmp_path / "in.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
    with Server(answer) as s:
        src = f"CREATE TABLE o (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='{tmp_path}/in.ndjson');\n"
        sql = src + http_table("hook", "k VARCHAR, n BIGINT, PRIMARY KEY (k) NOT ENFORCED", s.url + "/sums/{k}", method="put", retry_pause_ms="5") \
            + "INSERT INTO hook SELECT k, SUM(v) FROM o GROUP BY k HAVING SUM(v) > 0;\n"
        run_clink("run", "--changes", "-p", 2, "--set", f"batch_rows={batch_rows}", "-e", sql)
        sums = collections.Counter()
        for r in rows:
            sums[r["k"]] += r["v"]
        assert {r["k"]: r["n"] for r in kept.values()} == {k: n for k, n in sums.items() if n > 0}
        assert all(p == "/sums/" + r["k"].replace("/", "%2F") for p, r in kept.items())
        assert batch_rows == 4096 or "DELETE" in {m for m, *_ in s.seen}


def test_an_address_of_rows_that_change_is_their_key(tmp_path):
    src = orders(tmp_path, ROWS[:5])
    for url, sentence in (("http://h/all", "names no column"), ("http://h/{usr}", "must have the columns of the PRIMARY KEY in it"), ("http://h/{usr}/{n}", "which is not of the PRIMARY KEY"),
                          ("http://h/{n}", "which is not of the PRIMARY KEY")):
        r = run_clink("run", "-e", src + http_table("hook", "n BIGINT, usr VARCHAR, PRIMARY KEY (usr, n) NOT ENFORCED" if url == "http://h/{usr}" else "n BIGINT, usr VARCHAR, PRIMARY KEY (usr) NOT ENFORCED", url)
                      + "INSERT INTO hook SELECT n, usr FROM o;\n", ok=False)
        assert r.code == 1 and sentence in r.err, r.err
    r = run_clink("run", "-e", src + http_table("hook", "usr VARCHAR, n BIGINT", "http://h/{usr}") + "INSERT INTO hook SELECT usr, COUNT(*) FROM o GROUP BY usr;\n", "--changes", ok=False)
    assert r.code == 1 and "hook" in r.err, r.err


@pytest.mark.parametrize("on_error", ["fail", "skip", "dead_letter"])
def test_rows_that_are_refused_obey_on_error(tmp_path, on_error):
    def answer(method, path, headers, body):
        n = json.loads(body)["n"]
        return (422, {"why": "odd"}) if n % 100 == 13 else (503, "never") if n % 100 == 14 else (200, b"")

    with Server(answer) as s:
        letters = f"CREATE TABLE letters (raw BYTES, split VARCHAR, \"offset\" BIGINT, reason VARCHAR) WITH (connector='file', format='json', path='{tmp_path}/letters');\n"
        options = {"on_error": on_error, "retries": "1", "retry_pause_ms": "1", **({"dead_letter_table": "letters"} if on_error == "dead_letter" else {})}
        sql = letters + orders(tmp_path, ROWS) + http_table("hook", "n BIGINT, usr VARCHAR", s.url + "/in", **options) + "INSERT INTO hook SELECT n, usr FROM o;\n"
        got = run_clink("run", "-p", 1, "-e", sql, ok=on_error != "fail")
        if on_error == "fail":
            assert 'table "hook": POST ' + s.url + '/in: the answer is ' in got.err and "the row is: {" in got.err, got.err
            return
        arrived = {json.loads(b)["n"] for _, _, _, b in s.seen}
        assert arrived == set(range(2000))
        bad = {n for n in range(2000) if n % 100 in (13, 14)}
        tries = collections.Counter(json.loads(b)["n"] for _, _, _, b in s.seen)
        assert all(tries[n] == (2 if n % 100 == 14 else 1) for n in range(2000))
        if on_error == "dead_letter":
            rows = read_rows(tmp_path / "letters")
            assert {json.loads(base64.b64decode(r["raw"]))["n"] for r in rows} == bad and len(rows) == len(bad)
            assert all(r["split"] == 'table "hook"' and r["offset"] is None for r in rows)
            assert {r["reason"].split("/in: ")[1] for r in rows} == {'the answer is 422 ({"why": "odd"})', 'the answer is 503 ("never"), after 2 tries'}
        else:
            assert f"{len(bad)} records of hook did not fit and were left out" in got.err, got.err


def test_a_job_that_is_killed_sends_again_with_the_same_keys(tmp_path):
    """At least once: all rows arrive; a receiver that remembers keys sees each row once, since what comes again has its key."""
    first = {}

    def answer(method, path, headers, body):
        assert first.setdefault(headers["Idempotency-Key"], body) == body
        return 200, b""

    src = tmp_path / "in.ndjson"
    src.write_text("")
    sent = 0
    with Server(answer) as s:
        job = Job(tmp_path, f"CREATE TABLE o (n BIGINT) WITH (connector='file', path='{src}', follow='true');\n"
                  + http_table("hook", "n BIGINT", s.url + "/in") + "INSERT INTO hook SELECT n FROM o;\n")
        for _ in range(4):
            job.start(1)
            for _ in range(3):
                with open(src, "a") as f:
                    f.write("".join(json.dumps({"n": i}) + "\n" for i in range(sent, sent + 50)))
                sent += 50
                time.sleep(0.2)
            job.kill()
        job.start(1)
        arrived = lambda: {json.loads(b)["n"] for _, _, _, b in list(s.seen)}
        wait_for(lambda: len(arrived()) == sent, job)
        job.kill()
        assert arrived() == set(range(sent))
        keys = collections.Counter(json.loads(b)["n"] for b in first.values())
        assert all(n == 1 for n in keys.values()), keys.most_common(5)
        assert "at least once: requests are answered before a checkpoint counts" in job.log.read_text()
