-- sink: bidder BIGINT, n BIGINT, ws TIMESTAMP_LTZ(3), we TIMESTAMP_LTZ(3)
SELECT bidder, COUNT(*) AS n, window_start AS ws, window_end AS we
FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(rt), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end
