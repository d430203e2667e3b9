CREATE TABLE t (a TIMESTAMP) WITH (connector='file', path='x.ndjson', event_time_column='b');
