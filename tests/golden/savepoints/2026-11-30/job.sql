
CREATE TABLE src (id BIGINT NOT NULL, k VARCHAR, v BIGINT, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH (connector='file', format='json', path='in.ndjson', rate_limit=300);
CREATE TABLE names (k VARCHAR, name VARCHAR) WITH (connector='file', format='json', path='names.ndjson');
CREATE TABLE groups (k VARCHAR, n BIGINT, s BIGINT, a DOUBLE, mn BIGINT, mx DOUBLE, ds DECIMAL(38,2), u BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='out/groups', mode='upsert');
CREATE TABLE windows (k VARCHAR, e TIMESTAMP(3), n BIGINT, u BIGINT) WITH (connector='file', format='json', path='out/windows');
CREATE TABLE joined (id BIGINT, name VARCHAR) WITH (connector='file', format='json', path='out/joined');
CREATE TABLE top (k VARCHAR, v BIGINT, id BIGINT, PRIMARY KEY (k, v, id) NOT ENFORCED) WITH (connector='file', format='json', path='out/top', mode='upsert');
CREATE TABLE first (k VARCHAR, id BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='out/first', mode='upsert');
CREATE TABLE sessions (k VARCHAR, e TIMESTAMP(3), n BIGINT) WITH (connector='file', format='json', path='out/sessions');
CREATE TABLE running (id BIGINT, s BIGINT) WITH (connector='file', format='json', path='out/running');
CREATE TABLE rows (id BIGINT, k VARCHAR, x DOUBLE, d DECIMAL(10,2), ts TIMESTAMP(3)) WITH (connector='file', format='json', path='out/rows');
INSERT INTO groups SELECT k, COUNT(*), SUM(v), AVG(v), MIN(v), MAX(x), SUM(d), COUNT(DISTINCT v) FROM src GROUP BY k;
INSERT INTO windows SELECT k, window_end, COUNT(*), COUNT(DISTINCT v) FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO joined SELECT src.id, names.name FROM src JOIN names ON src.k = names.k;
INSERT INTO top SELECT k, v, id FROM (SELECT k, v, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM src WHERE v IS NOT NULL) WHERE n <= 3;
INSERT INTO first SELECT k, id FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts, id) AS n FROM src) WHERE n = 1;
INSERT INTO sessions SELECT k, window_end, COUNT(*) FROM TABLE(SESSION(TABLE src PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO running SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM src;
INSERT INTO rows SELECT id, k, x, d, ts FROM src;
