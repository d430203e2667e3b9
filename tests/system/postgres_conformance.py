"""PostgreSQL in the conformance suite of transactional sinks."""
import json

from conformance import Missing, Sink
from postgres_server import Server
import pytest


class PostgresSink(Sink):
    title = "postgres"
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


class PostgresLettersSink(PostgresSink):
    """Some rows the server refuses: each is a dead letter once, and none of the table."""
    title = "postgres, dead letters"

    def table(self, cell):
        n = cell.number
        self.server.run(f"CREATE TABLE snk{n} (id bigint CHECK (id % 97 <> 5), k text); CREATE TABLE letters{n} (raw bytea, split text, \"offset\" bigint, reason text)")
        letters = self.server.table("letters", 'raw BYTES, split VARCHAR, "offset" BIGINT, reason VARCHAR', table=f"letters{n}")
        return letters + self.server.table("snk", "id BIGINT, k VARCHAR", table=f"snk{n}", on_error="dead_letter", dead_letter_table="letters")[:-2]

    def rows(self, cell):
        """Read in one snapshot: those of the table, and those of the letters, which say why."""
        both = self.server.run(f"SELECT id, k, NULL, NULL FROM snk{cell.number} UNION ALL SELECT NULL, NULL, raw, reason FROM letters{cell.number}")
        letters = [json.loads(raw) for _, _, raw, _ in both if raw is not None]
        assert all(r["id"] % 97 == 5 for r in letters) and all("check constraint" in why for *_, why in both if why), letters[:3]
        return [(i, k) for i, k, raw, _ in both if raw is None] + [(r["id"], r["k"]) for r in letters]
