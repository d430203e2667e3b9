CREATE TABLE o (k VARCHAR, at INTEGER, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='o.ndjson');
-- way out:
CREATE TABLE o (k VARCHAR, at INTEGER, event_time AS TO_TIMESTAMP_LTZ(at, 0), WATERMARK FOR event_time AS event_time) WITH (connector='file', format='json', path='o.ndjson');
SELECT COUNT(*) FROM o GROUP BY TUMBLE(event_time, INTERVAL '1' MINUTE);
