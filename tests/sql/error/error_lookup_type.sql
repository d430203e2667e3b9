CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
CREATE TABLE names (id BIGINT, name VARCHAR, PRIMARY KEY (id) NOT ENFORCED) WITH (connector='file', path='names.csv');
SELECT name FROM t JOIN names FOR SYSTEM_TIME AS OF PROCTIME() AS n ON n.id = t.s;
-- way out:
CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson', follow='true');
CREATE TABLE names (id BIGINT, name VARCHAR, PRIMARY KEY (id) NOT ENFORCED) WITH (connector='file', path='names.csv');
SELECT name FROM t LEFT JOIN names FOR SYSTEM_TIME AS OF PROCTIME() AS n ON n.id = TRY_CAST(t.s AS BIGINT);
