CREATE TABLE a (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='a', format='json', follow=TRUE);
CREATE TABLE b (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts) WITH (connector='file', path='b', format='json', follow=TRUE);
-- made alike: the ends say all; the sides stay where their groups are; the window of what came out can be counted
WITH x AS (SELECT k, window_start AS ws, window_end AS we, SUM(v) AS s FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end),
  y AS (SELECT k, window_start AS ws, window_end AS we, SUM(v) AS s FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end)
SELECT x.ws, COUNT(*) AS n, SUM(y.s) AS s FROM x LEFT JOIN y ON x.k = y.k AND x.ws = y.ws AND x.we = y.we GROUP BY x.ws, x.we;
