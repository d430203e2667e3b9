CREATE TABLE t (k VARCHAR, v BIGINT, p AS PROCTIME()) WITH (connector='file', path='x', format='json', follow=TRUE);
-- by the clock, as rows come: no watermark is asked for; each window counts for itself
SELECT k, window_start, SUM(v) AS s FROM TABLE(HOP(TABLE t, DESCRIPTOR(p), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end
UNION ALL SELECT k, SESSION_START(p, INTERVAL '1' MINUTE), SUM(v) FROM t GROUP BY SESSION(p, INTERVAL '1' MINUTE), k;
