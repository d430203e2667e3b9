CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' MONTH) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '30' DAY) WITH (connector='file', path='x.ndjson');
