"""Operators of a script that do the same: over the same key, the same join twice. From a checkpoint each goes on with its own state, told by
where it stands, or the change is refused: nothing is guessed. What is accepted must give the answer of a run that was not disturbed, each
statement over the rows since it was there."""
import json
import os
import random
import signal

import pytest

from conftest import read_rows, run_clink
from test_evolve import Job

KEYS = 5


def row(i):
    return {"k": "k%d" % (i % KEYS), "v": i * 11 % 17, "w": i}


class Lives(Job):
    """A script is {table: [branch]}, with a table `copy` that says when all has been read; extra: more columns of src."""

    def append(self, n):
        with open(self.inp, "a") as f:
            for i in range(self.rows, self.rows + n):
                f.write(json.dumps(row(i)) + "\n")
        self.rows += n

    def script(self, sql):
        path = self.where / "job.sql"
        path.write_text(sql.replace("{inp}", str(self.inp)).replace("{out}", str(self.out)))
        return path


SRC = "CREATE TABLE src (k VARCHAR, v BIGINT, w BIGINT{extra}) WITH (connector='file', format='json', path='{inp}', follow='true');\n"
COPY = "CREATE TABLE copy (v BIGINT) WITH (connector='file', format='json', path='{out}-copy');\nINSERT INTO copy SELECT v FROM src;\n"
SINK = "CREATE TABLE %s (key VARCHAR, s BIGINT, m BIGINT, c BIGINT, PRIMARY KEY (key) NOT ENFORCED) WITH (connector='file', format='json', path='{out}-%s', mode='upsert');\n"
CALLS = {"s": "SUM(v)", "m": "MAX(w)", "c": "COUNT(*)"}


def branch(prefix, calls="s", where=""):
    return prefix, calls, where


def select(b):
    prefix, calls, where = b
    if calls == "distinct":
        return "SELECT '%s' || k, %s FROM (SELECT DISTINCT k FROM src%s) AS d" % (prefix, ", ".join(["CAST(NULL AS BIGINT)"] * 3), where)
    return "SELECT '%s' || k, %s FROM src%s GROUP BY k" % (prefix, ", ".join(CALLS[c] if c in calls else "CAST(NULL AS BIGINT)" for c in "smc"), where)


def text(tables, extra="", paths={}):
    """tables: [(name, [branch])]; paths: of tables that were renamed, the name they had."""
    out = SRC.replace("{extra}", extra) + COPY
    for name, branches in tables:
        out += SINK % (name, paths.get(name, name)) + "INSERT INTO %s %s;\n" % (name, " UNION ALL ".join(map(select, branches)))
    return out


def of_rows(b, first, n):
    """What a branch says of rows first .. n-1."""
    prefix, calls, where = b
    out = {}
    for i in range(first, n):
        r = row(i)
        if where and not eval(where.replace(" WHERE ", ""), {}, r):
            continue
        was = out.setdefault(prefix + r["k"], {"s": 0, "m": -1, "c": 0})
        was["s"], was["m"], was["c"] = was["s"] + r["v"], max(was["m"], r["w"]), was["c"] + 1
    return {k: tuple(a[c] if c in calls else None for c in "smc") for k, a in out.items()}


def answer(branches, n, since):
    out = {}
    for b in branches:
        out.update(of_rows(b, since.get(b[0], 0), n))
    return out


def told(job, name):
    return {r["key"]: (r.get("s"), r.get("m"), r.get("c")) for r in job.table("-" + name)}


def check(job, tables, since={}, paths={}):
    """since: by (table, prefix of a branch) the first row it has seen; else 0."""
    for name, branches in tables:
        mine = {b[0]: since.get((name, b[0]), 0) for b in branches}
        assert told(job, paths.get(name, name)) == answer(branches, job.rows, mine), name
    assert len(job.copied()) == job.rows  # nothing twice, nothing missing


def a(*branches):
    return ("a", list(branches))


def b(*branches):
    return ("b", list(branches))


def c(*branches):
    return ("c", list(branches))


S, M, SM = branch("", "s"), branch("", "m"), branch("", "sm")
X = branch("x", "s")
MORE = ", note VARCHAR, z BIGINT"

# was, now, more columns, what begins now: what goes on
GOES_ON = {
    "the same": ([a(S), b(M)], [a(S), b(M)], "", []),
    "the same twice": ([a(S), b(S)], [a(S), b(S)], "", []),
    "an unused column": ([a(S), b(S)], [a(S), b(S)], MORE, []),
    "one more of the name": ([a(S)], [a(S), b(M)], "", ["b"]),
    "one more, the same": ([a(S)], [a(S), b(S)], "", ["b"]),
    "one more, the same, before it": ([a(S)], [b(S), a(S)], "", ["b"]),
    "two more and a column": ([a(S), b(M)], [c(S), b(M), a(S)], MORE, ["c"]),
    "reordered": ([a(S), b(M)], [b(M), a(S)], "", []),
    "the same, reordered": ([a(S), b(S)], [b(S), a(S)], "", []),
    "one has an aggregate less": ([a(SM), b(S)], [a(S), b(S)], "", []),
    "an aggregate less, reordered": ([a(SM), b(S)], [b(S), a(M)], MORE, []),
    "in one table": ([a(S, X)], [a(S, X)], MORE, []),
    "in one table, reordered": ([a(S, X)], [a(X, S)], "", []),
    "in one table, other aggregates": ([a(SM, branch("x", "m"))], [a(branch("x", "m"), SM)], MORE, []),
    "in one table and another": ([a(S, X), b(S)], [b(S), c(X), a(X, S)], "", ["c"]),
}


@pytest.mark.parametrize("change", sorted(GOES_ON))
def test_what_goes_on(tmp_path, change):
    was, now, extra, new = GOES_ON[change]
    job = Lives(tmp_path)
    code, err = job.life(text(was))
    assert code == 0, err
    begins = {(name, b[0]): job.rows for name, branches in now if name in new for b in branches}
    code, lines, err = job.explain(text(now, extra))
    assert code == 0 and not any(line.startswith("refused") for line in lines), (lines, err)
    r = run_clink("check-savepoint", job.ck, "--expected", job.script(text(now, extra)), ok=False)
    assert r.code == 0, r.out + r.err
    job.append(103)
    code, err = job.life(text(now, extra))
    assert code == 0, err
    check(job, now, begins)
    job.append(10)
    code, err = job.life(text(now, extra), "-p", 2)
    assert code == 0, err
    check(job, now, begins)


# was, now, what is said, code with --allow-semantic-change
REFUSED = {
    "one less": ([a(S), b(S)], [a(S)], "what it has written stays as it is", 4),
    "one less in a table": ([a(S, branch("x", "m"))], [a(S)], "its state is given up", 4),
    "one becomes two elsewhere": ([a(S)], [b(S), c(S)], "may go on from group_agg(k)<-src (of sink:a) of the checkpoint, as may group_agg(k)<-src~", 4),
    "two become two elsewhere": ([a(S), b(S)], [c(S), ("d", [S])], "may go on from group_agg(k)<-src~", 4),
    "tables change places": ([a(S), b(M)], [a(M), b(S)], "'max(w)' is not in the checkpoint", 4),
    "tables of other operators change places": ([a(S), b(branch("", "distinct"))], [a(branch("", "distinct")), b(S)],
                                               "sink:a: materialise:a fed it, and goes on as materialise:b, which does not", 0),
    "an aggregate more": ([a(S), b(M)], [a(S), b(SM)], "'sum(v)' is not in the checkpoint", 4),
    "an aggregate moves on and another comes": ([a(S)], [a(M), b(S)], "'max(w)' is not in the checkpoint", 4),
    "other prefixes in one table": ([a(S, X)], [a(branch("y"), branch("z"))], "nothing tells", 4),
}


@pytest.mark.parametrize("change", sorted(REFUSED))
def test_what_is_refused(tmp_path, change):
    was, now, why, allowed = REFUSED[change]
    job = Lives(tmp_path)
    code, err = job.life(text(was))
    assert code == 0, err
    before = sorted(os.listdir(job.ck))
    code, lines, err = job.explain(text(now))
    assert code == 3 and any(line.startswith("refused") and why in line for line in lines), (lines, err)
    r = run_clink("check-savepoint", job.ck, "--expected", job.script(text(now)), ok=False)
    assert r.code == 3 and why in r.out, r.out + r.err
    code, err = job.life(text(now))
    assert code == 1 and "was made by another script, and this one cannot go on from all it keeps" in err, err
    assert sorted(os.listdir(job.ck)) == before  # nothing was touched
    code, lines, err = job.explain(text(now), "--allow-semantic-change")
    assert code == allowed, (lines, err)


def test_what_cannot_be_told_is_computed_again(tmp_path):
    was, now = [a(S)], [a(M), b(S), c(S)]
    job = Lives(tmp_path)
    assert job.life(text([b(S), c(S)]))[0] == 0
    now = [("d", [S]), ("e", [S]), b(S)]
    sql = text([("d", [S]), ("e", [S])])
    code, lines, err = job.explain(sql, "--added-state", "backfill", "--allow-semantic-change")
    assert code == 4 and sum(line.startswith("backfill group_agg(k)<-src~") for line in lines) == 2, (lines, err)
    job.append(51)
    code, err = job.life(sql, "--added-state", "backfill", "--allow-semantic-change")
    assert code == 0, err
    check(job, [("d", [S]), ("e", [S])])


def test_in_two_steps(tmp_path):
    """The way out that the refusal names: tables first, the rest then."""
    job = Lives(tmp_path)
    assert job.life(text([a(S)]))[0] == 0
    wanted = [b(S), c(S)]
    code, lines, err = job.explain(text(wanted, paths={"b": "a"}))  # the same file under another name
    assert code == 0 and any(line.startswith("reuse    sink:b (was sink:a)") for line in lines), (lines, err)
    job.append(20)
    assert job.life(text([b(S)], paths={"b": "a"}))[0] == 0
    begins = {("c", ""): job.rows}
    job.append(20)
    code, err = job.life(text(wanted, paths={"b": "a"}))
    assert code == 0, err
    check(job, wanted, begins, {"b": "a"})


def test_each_has_the_rows_it_has_seen(tmp_path):
    """The same statement twice, one of them since later: equal text, other state. A swap would not be told by any error."""
    job = Lives(tmp_path)
    assert job.life(text([a(S)]))[0] == 0
    begins = {("b", ""): job.rows}
    job.append(30)
    assert job.life(text([b(S), a(S)]))[0] == 0  # its ordinal is the first one now
    for now, extra in (([a(S), b(S)], ""), ([b(S), a(S)], MORE), ([a(S), b(S)], MORE)):
        job.append(30)
        sql = text(now, extra)
        r = run_clink("run", job.script(sql), "--checkpoint-dir", job.ck, env={"CLINK_FAULT": "restore.after_load:1:kill"}, ok=False)
        assert r.code == -signal.SIGKILL, r.err
        code, err = job.life(sql)
        assert code == 0, err
        check(job, now, begins)


JOINS = "CREATE TABLE {name} (k VARCHAR, v BIGINT, w BIGINT, n BIGINT) WITH (connector='file', format='json', path='{out}-{name}');\n"
NAMES = "CREATE TABLE names (k VARCHAR, n BIGINT) WITH (connector='file', format='json', path='{inp}.names', follow='true');\n"
JOIN = "SELECT src.k, {v}, {w}, n FROM src JOIN names ON src.k = names.k"


def joins(*tables, extra=""):
    out = SRC.replace("{extra}", extra) + NAMES + COPY
    for name, queries in tables:
        out += JOINS.replace("{name}", name) + "INSERT INTO %s %s;\n" % (name, " UNION ALL ".join(queries))
    return out


def rows_of(job, name):
    return sorted(tuple(r.get(c) for c in "kvwn") for r in job.table("-" + name))


@pytest.mark.parametrize("extra", ["", MORE])
@pytest.mark.parametrize("was,now", [
    ([("a", 1), ("b", 1)], [("a", 1), ("b", 1)]),
    ([("a", 1), ("b", 1)], [("b", 1), ("a", 1)]),
    ([("a", 2)], [("a", 2)]),
    ([("a", 1)], [("a", 1), ("b", 1)]),
    ([("a", 2), ("b", 1)], [("b", 1), ("a", 2), ("c", 1)]),
], ids=["twice", "reordered", "a union of one join twice", "one more", "one more beside a union"])
def test_the_same_join_twice(tmp_path, was, now, extra):
    """A join's uid says which columns its tables have, so that a column more gives all of them other ones."""
    where = str(tmp_path / "in.ndjson.names")
    with open(where, "w") as f:
        f.writelines(json.dumps({"k": "k%d" % k, "n": k}) + "\n" for k in range(KEYS))
    query = JOIN.replace("{v}", "v").replace("{w}", "w")
    job = Lives(tmp_path)
    assert job.life(joins(*((name, [query] * n) for name, n in was)))[0] == 0
    first = job.rows
    sql = joins(*((name, [query] * n) for name, n in now), extra=extra)
    code, lines, err = job.explain(sql)
    assert code == 0, (lines, err)
    job.append(60)
    code, err = job.life(sql)
    assert code == 0, err
    full = sorted((row(i)["k"], row(i)["v"], row(i)["w"], i % KEYS) for i in range(job.rows))
    for name, n in was:
        assert rows_of(job, name) == sorted(full * n), name


# ---- random scripts ----

def random_tables(r):
    tables = []
    for name in "ab"[:r.randint(1, 2)]:
        prefixes = r.sample("pqr", r.choice((1, 1, 2)))
        tables.append((name, [branch(p, r.choice(("s", "s", "sm", "smc")), r.choice(("", "", " WHERE v > 3"))) for p in prefixes]))
    return tables


HARMLESS, HARMFUL = ("order", "branches", "new", "column", "less"), ("gone", "branch gone", "swap", "prefix", "move", "more")


def change(r, tables, kinds, extra):
    """One to three changes. -> tables, columns, the kinds that did something"""
    tables, done = [(n, list(bs)) for n, bs in tables], set()
    for kind in r.sample(kinds, r.randint(1, min(3, len(kinds)))):
        before = repr((tables, extra))
        i = r.randrange(len(tables))
        name, bs = tables[i]
        k = r.randrange(len(bs))
        prefix, calls, where = bs[k]
        if kind == "order":
            r.shuffle(tables)
        elif kind == "branches":
            r.shuffle(bs)
        elif kind == "new" and len(tables) < 4:
            tables.insert(r.randrange(len(tables) + 1), (next(n for n in "abcdefg" if n not in dict(tables)), [branch(r.choice(("p", prefix)), calls, where)]))
        elif kind == "column":
            extra += ", z%d BIGINT" % extra.count(",")
        elif kind == "less" and len(calls) > 1:
            bs[k] = (prefix, calls[1:], where)
        elif kind == "gone" and len(tables) > 1:
            del tables[i]
        elif kind == "branch gone" and len(bs) > 1:
            del bs[k]
        elif kind == "swap" and len(tables) > 1:
            j = r.randrange(len(tables))
            tables[i], tables[j] = (name, tables[j][1]), (tables[j][0], bs)
        elif kind == "prefix":
            bs[k] = (r.choice([p for p in "pqrst" if p not in [b[0] for b in bs]]), calls, where)
        elif kind == "move" and len(bs) > 1 and len(tables) > 1:
            others = tables[(i + 1) % len(tables)][1]
            if prefix not in [b[0] for b in others]:
                others.append(bs.pop(k))
        elif kind == "more" and len(calls) < 3:
            bs[k] = (prefix, "smc", where)
        if repr((tables, extra)) != before:
            done.add(kind)
    return tables, extra, done


def possible(was, now, since, first):
    """By (table, prefix) the rows a branch may begin with. A prefix is what a script tells branches of a table apart by; where it
    changed, it is that of the one branch that went, and of several with the same filter nobody knows which: an empty set."""
    was, out = dict(was), {}
    for name, bs in now:
        before = {b[0]: b for b in was.get(name, [])}
        gone = [b for b in before.values() if b[0] not in [x[0] for x in bs]]
        for b in bs:
            fits = [g for g in gone if g[2] == b[2]]
            rivals = [x for x in bs if x[0] not in before and x[2] == b[2]]
            same = [g for g in fits if g[1] == b[1]]
            alone = len(same) == 1 and len([x for x in rivals if x[1] == b[1]]) == 1
            if b[0] in before:
                out[name, b[0]] = {since[name, b[0]]}
            elif not fits:
                out[name, b[0]] = {first}
            elif len(fits) == 1 and len(rivals) == 1 or alone:
                out[name, b[0]] = {since[name, (same if alone else fits)[0][0]]}
            else:
                out[name, b[0]] = set()
    return out


def run_random(where, seed):
    r = random.Random(seed)
    job = Lives(where)
    tables, extra = random_tables(r), ""
    code, err = job.life(text(tables, extra))
    assert code == 0, err
    since = {(name, b[0]): 0 for name, bs in tables for b in bs}
    said = []
    for step in range(4):
        kinds = HARMLESS if step % 2 == 0 else HARMLESS + HARMFUL
        now, columns, done = change(r, tables, kinds, extra)
        place = (seed, step, sorted(done), tables, now)
        code, lines, err = job.explain(text(now, columns))
        assert code in (0, 3), (place, lines, err)
        said.append(code)
        if code == 3:
            assert done & set(HARMFUL), (place, lines)
            continue
        assert not done & {"gone", "branch gone", "more"}, (place, lines)
        begins = possible(tables, now, since, job.rows)
        assert all(begins.values()), (place, lines)
        job.append(r.randint(40, 80))  # every row changes what is said of its key
        code, err = job.life(text(now, columns), "-p", r.choice((1, 2)))
        assert code == 0, (place, err)
        since = {k: min(v) for k, v in begins.items()}
        gone = {name: [b[0] for b in bs if b[0] not in [x[0] for x in dict(now)[name]]] for name, bs in tables}
        for name, bs in now:
            got = {k: v for k, v in told(job, name).items() if k[0] not in gone.get(name, [])}
            assert got == answer(bs, job.rows, {b[0]: since[name, b[0]] for b in bs}), (place, name, lines)
        if any(gone.values()):
            break  # rows under a prefix that went stay where they are
        tables, extra = now, columns
    return said


@pytest.mark.parametrize("seed", range(int(os.environ.get("CLINK_EVOLVE_SEEDS", "5"))))
def test_random_scripts(tmp_path, seed):
    run_random(tmp_path, 1000 + seed)
