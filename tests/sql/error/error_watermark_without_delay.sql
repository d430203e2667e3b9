CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
