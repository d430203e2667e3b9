"""Tokens with roles: who shows one may do what its role says, and is told which role the rest wants."""
import pytest
from conftest import run_clink
from test_cluster import COPY, DEADLINE_S, Cluster, until

ROLES = {"read": "r" * 32, "submit": "s" * 40, "plugin": "p" * 40, "worker": "w" * 64}


class RolesCluster(Cluster):
    """The operator's tokens are in `tokens`, and each in a file of its own for whoever shows it."""

    def __init__(self, tmp_path):
        super().__init__(tmp_path)
        (tmp_path / "tokens").write_text("# one line each\n" + "".join(f"{role}  {token}\n" for role, token in ROLES.items()))
        for role, token in ROLES.items():
            (tmp_path / role).write_text(token + "\n")

    def ask_as(self, role, *args):
        return run_clink(*args, "--coordinator", self.address, "--token-file", role, cwd=self.cwd, env=self.env, ok=False, timeout=DEADLINE_S)


@pytest.fixture
def cluster(tmp_path):
    c = RolesCluster(tmp_path)
    yield c
    c.end()


def test_each_role_may_what_it_says(cluster):
    cluster.coordinator("--token-file", "tokens")
    before = (cluster.cwd / "tokens").read_text()
    cluster.worker("w1", 4, "--token-file", cluster.cwd / "worker")
    (cluster.cwd / "job.sql").write_text(COPY)
    submit = ("submit", "--json", "--checkpoint-dir", "ck", "job.sql")
    job = until("a slot", lambda: (r := cluster.ask_as("submit", *submit)).code == 0 and r).rows[0]["id"]
    refused = {
        "read": [submit, ("cancel", job), ("savepoint", job), ("stop", job), ("resume", job), ("drop", job)],
        "worker": [submit, ("list",), ("status", job), ("cancel", job)],
    }
    for role, asked in refused.items():
        for args in asked:
            wanted = "read" if args[0] in ("list", "status") else "submit"
            r = cluster.ask_as(role, *args)
            assert r.code == 1 and f"{args[0]} wants a token with the role {wanted}, and this one has {role}" in r.err, (args, r.err)
    for role in ("read", "submit", "plugin"):
        assert cluster.ask_as(role, "list", "--json").rows[0]["id"] == job
        assert cluster.ask_as(role, "status", job, "--json").rows[0]["error"] == ""
    until("it runs", lambda: cluster.ask_as("read", "status", job, "--json").rows[0]["status"] == "running")
    for args in (("savepoint", job), ("stop", job)):
        assert cluster.ask_as("submit", *args).code == 0
    assert cluster.ask_as("plugin", "drop", job).code == 0
    assert (cluster.cwd / "tokens").read_text() == before
    assert "no coordinator of yours" in cluster.ask("list", ok=False).err  # none was put where commands of the user look


def test_a_worker_needs_its_role(cluster):
    cluster.coordinator("--token-file", "tokens")
    p = cluster.start("worker", "--coordinator", cluster.address, "--slots", 1, "--token-file", "read")
    lines = [p.stderr.readline()]
    while "running subtasks wants a token with the role worker, and this one has read" not in lines[-1]:
        assert lines[-1], lines
        lines.append(p.stderr.readline())
    assert cluster.ask_as("read", "list", "--json").rows == []


def test_bad_files_are_refused_by_line(cluster):
    (cluster.cwd / "tokens").write_text(f"read {'r' * 32}\nking {'k' * 32}\n")
    r = run_clink("coordinator", "--port", 0, "--token-file", "tokens", cwd=cluster.cwd, env=cluster.env, ok=False)
    assert r.code == 1 and "tokens:2: a line begins with read, submit, plugin, worker, all" in r.err and "kkkk" not in r.err
    cluster.coordinator()
    (cluster.cwd / "stranger").write_text("x" * 64)
    r = cluster.ask_as("stranger", "list")
    assert r.code == 1 and "it has another token" in r.err
