CREATE TABLE orders (usr VARCHAR, ms BIGINT) WITH (connector='datagen', event_time_column='ms', watermark_lag_ms=500, fields.ms.kind='sequence');
ALTER TABLE orders RESET (event_time_column);
