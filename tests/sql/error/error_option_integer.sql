CREATE TABLE t (a INT) WITH (connector='file', path='x', part_bytes='many');
