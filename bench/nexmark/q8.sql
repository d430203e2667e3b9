-- sink: id BIGINT, name VARCHAR, ws TIMESTAMP_LTZ(3)
SELECT P.id, P.name, P.window_start AS ws
FROM (SELECT id, name, window_start, window_end
      FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(rt), INTERVAL '10' SECOND))
      GROUP BY id, name, window_start, window_end) P
JOIN (SELECT seller, window_start, window_end
      FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(rt), INTERVAL '10' SECOND))
      GROUP BY seller, window_start, window_end) A
ON P.id = A.seller AND P.window_start = A.window_start AND P.window_end = A.window_end
