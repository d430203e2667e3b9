-- options: changes
CREATE TABLE late (v BIGINT, k VARCHAR) WITH (connector='file', format='json', path='late');
CREATE TABLE t (k VARCHAR NOT NULL, at TIMESTAMP(3), v BIGINT, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='x', late_table='late');
CREATE TABLE r (k VARCHAR, at TIMESTAMP(3), p BIGINT, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='y');
CREATE VIEW u AS SELECT upper(k) AS k, at FROM t;
SELECT a.k, b.p FROM TABLE(TUMBLE(TABLE u, DESCRIPTOR(at), INTERVAL '1' HOUR)) a
  LEFT JOIN TABLE(TUMBLE(TABLE r, DESCRIPTOR(at), INTERVAL '1' HOUR)) b ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end;
