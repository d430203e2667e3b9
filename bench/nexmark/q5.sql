-- sink: auction BIGINT, num BIGINT, ws TIMESTAMP_LTZ(3)
WITH C AS (
  SELECT auction, COUNT(*) AS num, window_start AS ws, window_end AS we
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(rt), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end)
SELECT C.auction, C.num, C.ws
FROM C JOIN (SELECT MAX(num) AS maxn, ws, we FROM C GROUP BY ws, we) M
ON C.ws = M.ws AND C.we = M.we AND C.num >= M.maxn
