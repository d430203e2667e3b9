CREATE TABLE t (a INT, d INTERVAL SECOND, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - d) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x.ndjson');
