CREATE TABLE t (a BIGINT, b AS a * 2, c VARCHAR, d AS COALESCE(c, '!')) WITH (connector='file', path='t.csv');
SELECT d, b, a FROM t WHERE b > 4;
