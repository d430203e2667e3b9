CREATE TABLE t (r ROW<ts TIMESTAMP(3)>, WATERMARK FOR r.ts AS r.ts) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (r ROW<ts TIMESTAMP(3)>, ts AS r.ts, WATERMARK FOR ts AS ts) WITH (connector='file', path='x.ndjson');
