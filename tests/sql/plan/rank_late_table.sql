-- options: changes
CREATE TABLE late (v BIGINT) WITH (connector='file', format='json', path='late');
CREATE TABLE t (k VARCHAR NOT NULL, at TIMESTAMP(3), v BIGINT, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='x', late_table='late');
SELECT k, at FROM (SELECT k, at, ROW_NUMBER() OVER (PARTITION BY k ORDER BY at) AS n FROM t) x WHERE n = 1;
