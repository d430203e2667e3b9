CREATE TABLE late (k VARCHAR, vv BIGINT) WITH (connector='file', path='late.ndjson');
CREATE TABLE t (k VARCHAR NOT NULL, at TIMESTAMP(3), v BIGINT, day AS CAST(at AS DATE), WATERMARK FOR at AS at) WITH (connector='file', path='x.ndjson', late_table='late');
SELECT k, COUNT(*) FROM t GROUP BY TUMBLE(at, INTERVAL '1' HOUR), k;
