CREATE TABLE more (raw BYTES, split VARCHAR, "offset" BIGINT, reason VARCHAR) WITH (connector='file', path='more.ndjson');
CREATE TABLE late (k VARCHAR, at TIMESTAMP(3)) WITH (connector='http', url='http://127.0.0.1:1/in', on_error='dead_letter', dead_letter_table='more');
CREATE TABLE t (k VARCHAR, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (connector='file', path='x.ndjson', late_table='late');
SELECT k, COUNT(*) FROM t GROUP BY TUMBLE(at, INTERVAL '1' HOUR), k;
