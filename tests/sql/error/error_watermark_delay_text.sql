CREATE TABLE w (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - '5') WITH (connector='file', path='y.ndjson');
-- way out:
CREATE TABLE w (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='y.ndjson');
SELECT ts FROM w;
