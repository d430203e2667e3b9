-- options: changes
-- Rows come out of OVER in the order of time, and none is late for what stands above.
CREATE TABLE late (v BIGINT) WITH (connector='file', format='json', path='late');
CREATE TABLE t (k VARCHAR NOT NULL, at TIMESTAMP(3), v BIGINT, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='x', late_table='late');
CREATE VIEW first AS SELECT k, at, s FROM (SELECT k, at, SUM(v) OVER (PARTITION BY k ORDER BY at) AS s FROM t) x;
SELECT k, SUM(s) OVER (PARTITION BY k ORDER BY at) AS s FROM first;
