CREATE TABLE late_src (id BIGINT, k VARCHAR, v BIGINT, x DOUBLE, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH (connector='file', format='json', path='in.ndjson', rate_limit=200, allowed_lateness_ms=4000);
CREATE TABLE src (id BIGINT, k VARCHAR, v BIGINT, x DOUBLE, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)
  WITH (connector='file', format='json', path='in.ndjson', rate_limit=200);
CREATE TABLE late_hop (k VARCHAR, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, v BIGINT, mn BIGINT, x DOUBLE, PRIMARY KEY (k, s, e) NOT ENFORCED) WITH (connector='file', format='json', path='out/late_hop', mode='upsert');
INSERT INTO late_hop SELECT k, window_start, window_end, COUNT(*), SUM(v), MIN(v), SUM(x) FROM late_src GROUP BY k, HOP(ts, INTERVAL '1' SECOND, INTERVAL '3' SECOND);
CREATE TABLE sets_hop (k VARCHAR, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, u BIGINT, w BIGINT, mx BIGINT, x DOUBLE) WITH (connector='file', format='json', path='out/sets_hop');
INSERT INTO sets_hop SELECT k, window_start, window_end, COUNT(*), COUNT(DISTINCT v), SUM(DISTINCT v) FILTER (WHERE id % 3 = 0), MAX(v), AVG(x) FROM src GROUP BY k, HOP(ts, INTERVAL '1' SECOND, INTERVAL '3' SECOND);
CREATE TABLE clock_hop (k VARCHAR, s TIMESTAMP_LTZ(3), e TIMESTAMP_LTZ(3), n BIGINT, v BIGINT) WITH (connector='file', format='json', path='out/clock_hop');
INSERT INTO clock_hop SELECT k, window_start, window_end, COUNT(*), SUM(v) FROM src GROUP BY k, HOP(p, INTERVAL '1' SECOND, INTERVAL '3' SECOND);
CREATE TABLE late_hops (k VARCHAR, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, v BIGINT, mn BIGINT, x DOUBLE, PRIMARY KEY (k, s, e) NOT ENFORCED) WITH (connector='file', format='json', path='out/late_hops', mode='upsert');
INSERT INTO late_hops SELECT k, window_start, window_end, COUNT(*), SUM(v), MIN(v), SUM(x) FROM late_src GROUP BY k, HOP(ts, INTERVAL '0.5' SECOND, INTERVAL '10' SECOND);
CREATE TABLE sets_hops (k VARCHAR, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, u BIGINT, w BIGINT, mx BIGINT, x DOUBLE) WITH (connector='file', format='json', path='out/sets_hops');
INSERT INTO sets_hops SELECT k, window_start, window_end, COUNT(*), COUNT(DISTINCT v), SUM(DISTINCT v) FILTER (WHERE id % 3 = 0), MAX(v), AVG(x) FROM src GROUP BY k, HOP(ts, INTERVAL '0.5' SECOND, INTERVAL '10' SECOND);
CREATE TABLE clock_hops (k VARCHAR, s TIMESTAMP_LTZ(3), e TIMESTAMP_LTZ(3), n BIGINT, v BIGINT) WITH (connector='file', format='json', path='out/clock_hops');
INSERT INTO clock_hops SELECT k, window_start, window_end, COUNT(*), SUM(v) FROM src GROUP BY k, HOP(p, INTERVAL '0.5' SECOND, INTERVAL '10' SECOND);
CREATE TABLE late_cumulate (k VARCHAR, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, v BIGINT, mn BIGINT, x DOUBLE, PRIMARY KEY (k, s, e) NOT ENFORCED) WITH (connector='file', format='json', path='out/late_cumulate', mode='upsert');
INSERT INTO late_cumulate SELECT k, window_start, window_end, COUNT(*), SUM(v), MIN(v), SUM(x) FROM late_src GROUP BY k, CUMULATE(ts, INTERVAL '1' SECOND, INTERVAL '6' SECOND);
CREATE TABLE sets_cumulate (k VARCHAR, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT, u BIGINT, w BIGINT, mx BIGINT, x DOUBLE) WITH (connector='file', format='json', path='out/sets_cumulate');
INSERT INTO sets_cumulate SELECT k, window_start, window_end, COUNT(*), COUNT(DISTINCT v), SUM(DISTINCT v) FILTER (WHERE id % 3 = 0), MAX(v), AVG(x) FROM src GROUP BY k, CUMULATE(ts, INTERVAL '1' SECOND, INTERVAL '6' SECOND);
CREATE TABLE clock_cumulate (k VARCHAR, s TIMESTAMP_LTZ(3), e TIMESTAMP_LTZ(3), n BIGINT, v BIGINT) WITH (connector='file', format='json', path='out/clock_cumulate');
INSERT INTO clock_cumulate SELECT k, window_start, window_end, COUNT(*), SUM(v) FROM src GROUP BY k, CUMULATE(p, INTERVAL '1' SECOND, INTERVAL '6' SECOND);
CREATE TABLE rows (id BIGINT) WITH (connector='file', format='json', path='out/rows');
INSERT INTO rows SELECT id FROM src;
