"""PostgreSQL in the conformance suite of transactional sinks."""
from conformance import Missing, Sink
from postgres_server import Server
import pytest


class PostgresSink(Sink):
    title = "postgres"
    interval_ms = 40
    points = ("postgres.token", "postgres.sent", "postgres.committed")
    lost = ("commit.after", "postgres.committed")
    fences = True

    def start(self, where):
        self.server = Server()
        try:
            self.server.start()
        except pytest.skip.Exception as e:
            raise Missing(str(e)) from e

    def stop(self):
        self.server.remove()

    def restart(self):
        self.server.restart()
        return True

    def table(self, cell):
        self.server.run(f"CREATE TABLE snk{cell.number} (id bigint, k text)")
        return self.server.table("snk", "id BIGINT, k VARCHAR", table=f"snk{cell.number}")[:-2]

    def rows(self, cell):
        return self.server.run(f"SELECT id, k FROM snk{cell.number}")

    def left(self, cell):
        return [f"transaction of {a}" for a, in self.server.run("SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'clink%'")]


class PostgresUpsertSink(PostgresSink):
    """The same into a table with a key: rows are put by it."""
    title = "postgres, by key"

    def table(self, cell):
        self.server.run(f"CREATE TABLE snk{cell.number} (id bigint PRIMARY KEY, k text)")
        return self.server.table("snk", "id BIGINT, k VARCHAR, PRIMARY KEY (id) NOT ENFORCED", table=f"snk{cell.number}")[:-2]
