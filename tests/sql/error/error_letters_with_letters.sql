CREATE TABLE more (raw BYTES, split VARCHAR, "offset" BIGINT, reason VARCHAR) WITH (connector='file', path='more.ndjson');
CREATE TABLE letters (raw BYTES, split VARCHAR, "offset" BIGINT, reason VARCHAR) WITH (connector='http', url='http://127.0.0.1:1/in', on_error='dead_letter', dead_letter_table='more');
CREATE TABLE t (v BIGINT) WITH (connector='file', path='x.ndjson', on_error='dead_letter', dead_letter_table='letters');
SELECT v FROM t;
