CREATE TABLE t (k VARCHAR, v BIGINT, p AS PROCTIME()) WITH (connector='file', path='x', format='json', follow=TRUE);
-- rows get their window where they come, and with it the time of ranks, joins and groups behind them
SELECT a.k, a.p, r, n FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC) AS r FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(p), INTERVAL '5' SECOND))
  WHERE k <> 'x' AND p > TIMESTAMP_LTZ '2020-01-01 00:00:00') a
LEFT JOIN (SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(p), INTERVAL '5' SECOND)) WHERE window_start < window_end
  GROUP BY window_start, window_end) b
ON a.window_start = b.window_start AND a.window_end = b.window_end
WHERE r <= 2;
