CREATE TABLE l (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts) WITH (connector='file', path='x', format='json', allowed_lateness_ms='60000');
CREATE TABLE o (k VARCHAR, s BIGINT) WITH (connector='file', path='o', format='csv');
INSERT INTO o SELECT k, s FROM (SELECT *, RANK() OVER (PARTITION BY ws, we ORDER BY s DESC) AS r FROM (SELECT k, window_start AS ws, window_end AS we, SUM(v) AS s FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end)) WHERE r <= 2;
