CREATE TABLE a (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='a', format='json', follow=TRUE);
CREATE TABLE b (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts) WITH (connector='file', path='b', format='json', follow=TRUE, allowed_lateness_ms='60000');
-- no other equality: by the windows; allowed lateness is waited for
SELECT x.k, y.k AS yk FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)) x FULL JOIN TABLE(HOP(TABLE b, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) y
  ON x.window_start = y.window_start AND x.window_end = y.window_end;
