CREATE TABLE t (a TIMESTAMP(3), b TIMESTAMP(3), WATERMARK FOR a AS a, WATERMARK FOR b AS b) WITH (connector='file', path='x.ndjson');
