"""An etcd of the tests' own, started by tests/servers/etcd.sh."""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from postgres_server import free_port

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Etcd:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="clink-etcd-")
        self.port, self.peer = free_port(), free_port()
        self.start()

    def start(self):
        self.proc = subprocess.Popen([os.path.join(TOP, "tests", "servers", "etcd.sh"), self.dir, str(self.port), str(self.peer)])
        end = time.monotonic() + 120
        while True:
            try:
                self.ask("/v3/kv/range", {"key": base64.b64encode(b"x").decode()}, timeout=1)
                return
            except OSError:
                assert self.proc.poll() is None and time.monotonic() < end, open(self.dir + "/log").read()
                time.sleep(0.05)

    def ask(self, path, question, timeout=60):
        r = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(question).encode())
        with urllib.request.urlopen(r, timeout=timeout) as answer:
            return json.load(answer)

    def url(self, prefix):
        return f"etcd://127.0.0.1:{self.port}/{prefix}"

    def get(self, prefix):
        """All pairs of a prefix: key to value, as bytes."""
        begin, end = f"{prefix}/".encode(), f"{prefix}0".encode()
        got = self.ask("/v3/kv/range", {"key": base64.b64encode(begin).decode(), "range_end": base64.b64encode(end).decode()})
        return {base64.b64decode(kv["key"])[len(begin):].decode(): base64.b64decode(kv.get("value", "")) for kv in got.get("kvs", [])}

    def put(self, key, value):
        self.ask("/v3/kv/put", {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value).decode()})

    def stop(self):
        self.proc.send_signal(signal.SIGCONT)
        self.proc.kill()
        self.proc.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
