CREATE TABLE t (a TIMESTAMP) WITH (connector='file', path='x', event_time_column='b');
