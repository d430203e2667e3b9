CREATE TABLE late (v BIGINT, day DATE, op VARCHAR, k VARCHAR) WITH (connector='file', format='json', path='late');
CREATE TABLE t (k VARCHAR NOT NULL, at TIMESTAMP(3), v BIGINT, day AS CAST(at AS DATE), WATERMARK FOR at AS at) WITH (connector='file', format='json', path='x', late_table='late');
SELECT u, SUM(w) OVER (PARTITION BY u ORDER BY at ROWS 9 PRECEDING) AS s FROM (SELECT at, upper(k) AS u, v + 1 AS w FROM t WHERE v > 3) x;
