CREATE TABLE t (a INT) WITH (connector='file', path='x.ndjson', part_bytes='many');
