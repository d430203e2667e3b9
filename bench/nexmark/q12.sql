-- sink: bidder BIGINT, n BIGINT, ws TIMESTAMP_LTZ(3)
SELECT bidder, COUNT(*) AS n, window_start AS ws
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(rt), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end
