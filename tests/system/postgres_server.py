"""A PostgreSQL server of the tests' own, started by tests/servers/postgres.sh."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import psycopg
import pytest
from conftest import TOP


AWAY_S = 65 if os.environ.get("CLINK_LONG") else 1  # how long a server is away


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, wal_level="logical"):
        self.dir = tempfile.mkdtemp(prefix="clink-pg-")
        os.chmod(self.dir, 0o755)  # its user must be able to pass
        self.port, self.proc, self.wal_level = free_port(), None, wal_level

    def start(self):
        self.proc = subprocess.Popen([os.path.join(TOP, "tests", "servers", "postgres.sh"), self.dir, str(self.port)],
                                     stderr=subprocess.PIPE, text=True, env={**os.environ, "PG_WAL_LEVEL": self.wal_level})
        end = time.monotonic() + 120
        while True:
            if self.proc.poll() is not None:
                reason = self.proc.stderr.read()
                if self.proc.returncode == 3:
                    pytest.skip(f"no server here: {reason}")
                raise RuntimeError(f"the server ended: {reason}")
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < end, "the server does not answer"
                time.sleep(0.05)

    def stop(self, how=signal.SIGINT):
        """SIGINT: the fast way of stopping; SIGQUIT: as a crash, recovered from at the next start."""
        self.proc.send_signal(how)
        self.proc.wait()

    def restart(self):
        self.stop(signal.SIGQUIT)
        self.start()

    def remove(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def connect(self, **kw):
        kw = {"host": "127.0.0.1", "port": self.port, "user": "postgres", "dbname": "postgres", "autocommit": True, **kw}
        return psycopg.connect(**kw)

    def run(self, sql, *args):
        with self.connect() as c:
            cursor = c.execute(sql, *args)
            return cursor.fetchall() if cursor.description else None

    def table(self, name, columns, **options):
        options = {"host": "127.0.0.1", "port": self.port, "user": "postgres", "database": "postgres", **options}
        more = "".join(f", {k.replace('__', '.')}='{v}'" for k, v in options.items() if v is not None)
        return f"CREATE TABLE {name} ({columns}) WITH (connector='postgres'{more});\n"
