CREATE TABLE t (a BIGINT, s VARCHAR, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<BIGINT>, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
COPY t FROM 'x.csv';
-- way out:
CREATE TABLE x (a BIGINT) WITH (connector='file', path='x.csv');
CREATE TABLE y (a BIGINT);
INSERT INTO y SELECT a FROM x;
