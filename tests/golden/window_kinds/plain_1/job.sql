CREATE TABLE src (id BIGINT, k VARCHAR, v BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts)
  WITH (connector='file', format='json', path='in.ndjson', rate_limit=400);
CREATE TABLE res (k VARCHAR, s TIMESTAMP(6), e TIMESTAMP(6), n BIGINT, m BIGINT, u BIGINT) WITH (connector='file', format='json', path='out/res');
CREATE TABLE rows (id BIGINT) WITH (connector='file', format='json', path='out/rows');
INSERT INTO res SELECT k, window_start, window_end, SUM(v), MIN(v), CAST(NULL AS BIGINT) FROM src GROUP BY k, HOP(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND);
INSERT INTO rows SELECT id FROM src;
