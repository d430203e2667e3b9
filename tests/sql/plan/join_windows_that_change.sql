CREATE TABLE a (k VARCHAR, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (connector='file', path='a', format='json', follow=TRUE, allowed_lateness_ms='60000');
CREATE TABLE b (k VARCHAR, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (connector='file', path='b', format='json', follow=TRUE);
SELECT x.k, x.window_end, x.n, y.n AS m FROM
  (SELECT k, window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end) x LEFT JOIN
  (SELECT k, window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end) y
  ON x.k = y.k AND x.window_start = y.window_start AND x.window_end = y.window_end;
