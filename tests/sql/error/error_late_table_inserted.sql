CREATE TABLE late (k VARCHAR, at TIMESTAMP(3)) WITH (connector='file', path='late.ndjson');
CREATE TABLE t (k VARCHAR NOT NULL, at TIMESTAMP(3), v BIGINT, day AS CAST(at AS DATE), WATERMARK FOR at AS at) WITH (connector='file', path='x.ndjson', late_table='late');
INSERT INTO late SELECT k, window_start FROM t GROUP BY TUMBLE(at, INTERVAL '1' HOUR), k;
