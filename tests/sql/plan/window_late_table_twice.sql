CREATE TABLE late (at TIMESTAMP(3), k VARCHAR) WITH (connector='file', path='late.ndjson');
CREATE TABLE t (k VARCHAR NOT NULL, at TIMESTAMP(3), v BIGINT, day AS CAST(at AS DATE), WATERMARK FOR at AS at) WITH (connector='file', path='x.ndjson', late_table='late');
SELECT k, COUNT(*) AS n FROM (SELECT * FROM t UNION ALL SELECT * FROM t) GROUP BY TUMBLE(at, INTERVAL '1' HOUR), k UNION ALL SELECT k, COUNT(*) FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end;
