"""tests/sql/*.slt pass at -p 1 and 3, and so does the reader of such files itself. `make slt DIR=...` runs any folder."""
import glob
import hashlib
import os
import subprocess
import sys

import pytest
from conftest import BUILD, TOP

RUNNER = os.path.join(TOP, "tests", "slt", "slt.py")
pytestmark = pytest.mark.skipif(os.environ.get("CLINK_SANITIZE", "") != "", reason="a sanitized library needs its runtime preloaded")


def run_slt(*args):
    p = subprocess.run([sys.executable, RUNNER, "--library", os.path.join(BUILD, "libclink.so"), *map(str, args)], capture_output=True, text=True, timeout=300)
    return p.returncode, p.stdout + p.stderr


@pytest.mark.parametrize("p", [1, 3])
def test_our_files(p):
    files = sorted(glob.glob(os.path.join(TOP, "tests", "sql", "*.slt")))
    code, out = run_slt("--strict", "--parallelism", p, *files)
    assert code == 0 and f"{len(files)} files" in out, out


def test_what_fails_is_reported(tmp_path):
    (tmp_path / "a.slt").write_text("""hash-threshold 8

statement ok
CREATE TABLE t (a BIGINT, s VARCHAR)

statement ok
INSERT INTO t VALUES (2, 'two words'), (1, ''), (3, NULL)

query IT rowsort
SELECT a, s FROM t
----
1 (empty)
2 two words
3 NULL

query IT rowsort
SELECT a, s FROM t WHERE a > 1
----
2
two words
3
NULL

query I valuesort
SELECT a FROM t
----
3 values hashing to c0710d6b4f15dfa88f600b0e6b624077

query R
SELECT 1.0 / 3
----
0.333

statement error did you mean "a"
SELECT aa FROM t

skipif clink
statement ok
NONSENSE

onlyif sqlite
statement ok
NONSENSE

query I
SELECT 1
----
2

query I
SELECT nope FROM t
----
1

statement error
SELECT 1

statement error some other text
SELECT nope FROM t

nonsense i 1 2

halt

statement ok
NONSENSE
""")
    code, out = run_slt("--strict", tmp_path)
    assert code == 1 and "1 files, 12 records, 7 passed (58.3%)" in out, out
    for why in ("1: wrong result", '2: refused: unknown column "..."', "1: an error was expected and none came", "1: record nonsense is not known", "a.slt:45: got [['1']], not ['2']"):
        assert why in out, out
    assert run_slt(tmp_path)[0] == 0 and run_slt(tmp_path / "nothing")[0] != 0


def test_keys_of_other_peoples_files(tmp_path):
    """A key is declared, not checked: the reader adds the words."""
    (tmp_path / "k.slt").write_text("""statement ok
CREATE TABLE t (a INT PRIMARY KEY, b INT)

statement ok
create table u (a INT, b INT, primary key (a, b))

statement ok
CREATE TABLE v (a INT, PRIMARY KEY (a) NOT ENFORCED)

statement ok
INSERT INTO u VALUES (1, 2)

query II
SELECT u.a, u.b FROM u LEFT JOIN t ON t.a = u.a
----
1 2
""")
    code, out = run_slt("--strict", tmp_path)
    assert code == 0 and "5 passed" in out, out


def test_what_other_systems_write(tmp_path):
    """As DuckDB, SQLite and sqllogictest-rs write them; each of the last records is to fail."""
    (tmp_path / "a.test").write_text("""# name: test/sql/a.test
require skip_reload

statement ok con1
CREATE TABLE t (i INTEGER, x DOUBLE)

foreach type <integral>

statement ok
CREATE TABLE t_${type} (a ${type})

loop k 0 3

statement ok
INSERT INTO t_${type} VALUES (${k})

endloop

query I
SELECT SUM(a) FROM t_${type}
----
3

statement ok
DROP TABLE t_${type}

endloop

statement maybe
DROP TABLE nothing

statement count 3
INSERT INTO t VALUES (1, 1.5), (2, 2.0), (3, 0.1)

query R
SELECT AVG(x) FROM t
----
1.2

query RT
SELECT CAST(i AS DOUBLE) / 3, 'it is ' || CAST(i AS VARCHAR) FROM t ORDER BY i
----
0.333	it is 1
0.6666666667	<REGEX>:it is \\d
1.0	<!REGEX>:it is [12]

query I rowsort label-1
SELECT i FROM t WHERE i < 3

query I rowsort label-1
SELECT i FROM t WHERE i <> 3
----
1
2

statement error
SELECT nope FROM t
----
Binder Error: Referenced column "nope" not found

mode skip

query I
NONSENSE

mode unskip

onlyif mysql # not ours
query I
SELECT 7 DIV 2
----
3

skipif clink
query I
NONSENSE

onlyif duckdb
query I
SELECT 7 / 2
----
3

hash-threshold 2

query II nosort
SELECT i, i + 1 FROM t ORDER BY i
----
6 values hashing to b51e3a55d8b2bcb8f2c0ee3d4ee1d01a
""".replace("b51e3a55d8b2bcb8f2c0ee3d4ee1d01a", hashlib.md5(b"1\n2\n2\n3\n3\n4\n").hexdigest()))
    (tmp_path / "b.test").write_text("""query I rowsort label-1
SELECT 1

query I rowsort label-1
SELECT 2

query R
SELECT 1.5
----
1.4

query T
SELECT 'a'
----
<REGEX>:b.*

require tpch

query I
SELECT 1
----
1
""")
    code, out = run_slt("--strict", tmp_path / "a.test")
    assert code == 0 and "34 records, 34 passed (100.0%)" in out, out
    code, out = run_slt(tmp_path)
    assert code == 0 and "3: wrong result (first at" in out and "1: the rest of the file needs tpch" in out and "b.test:4" in out, out
    assert "NONSENSE" in run_slt("--strict", "--as", "other", tmp_path / "a.test")[1]
