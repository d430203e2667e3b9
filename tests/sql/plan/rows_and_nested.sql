CREATE TABLE t (r ROW<a INT, b ROW<c VARCHAR>>, l ARRAY<INT>, m MAP<VARCHAR, INT>) WITH (connector='file', path='t.ndjson');
SELECT r.a, t.r.b.c, l[1], m['k'], (r).b FROM t;
