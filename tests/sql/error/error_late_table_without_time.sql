CREATE TABLE t (k VARCHAR) WITH (connector='file', path='x.ndjson', late_table='late');
