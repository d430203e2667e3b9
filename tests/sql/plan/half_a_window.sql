CREATE TABLE clicks (usr VARCHAR, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (connector='file', path='clicks.ndjson', follow='true');
EXPLAIN SELECT window_end, usr, COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_end, usr;
