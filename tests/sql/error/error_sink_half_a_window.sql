CREATE TABLE clicks (usr VARCHAR, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (connector='file', path='clicks.ndjson', follow='true');
CREATE TABLE counts (start TIMESTAMP(3), n BIGINT) WITH (connector='file', path='counts', format='json');
INSERT INTO counts SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_start;
-- way out:
CREATE TABLE clicks (usr VARCHAR, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (connector='file', path='clicks.ndjson', follow='true');
CREATE TABLE counts (start TIMESTAMP(3), n BIGINT) WITH (connector='file', path='counts', format='json');
INSERT INTO counts SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
