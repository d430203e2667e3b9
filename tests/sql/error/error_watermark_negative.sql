CREATE TABLE t (a TIMESTAMP, WATERMARK FOR a AS a - INTERVAL '-5' SECOND) WITH (connector='file', path='x.ndjson');
