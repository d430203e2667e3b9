CREATE TABLE t (k VARCHAR) WITH (connector='file', path='x', late_table='late');
