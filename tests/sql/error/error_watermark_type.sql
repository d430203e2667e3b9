CREATE TABLE t (a DATE, WATERMARK FOR a AS a) WITH (connector='file', path='x.ndjson');
