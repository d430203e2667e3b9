CREATE TABLE l (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts) WITH (connector='file', path='x', format='json', follow=TRUE, allowed_lateness_ms='60000');
SELECT k, v, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v) AS n FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND));
