CREATE TABLE clicks (usr VARCHAR, at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '5' SECOND) WITH (connector='file', path='clicks.ndjson', follow='true');
SELECT DISTINCT usr, window_start, window_end FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' MINUTE, INTERVAL '1' HOUR));
