CREATE TABLE t (r ROW<price INT, b INT>) WITH (connector='file', path='t.ndjson'); SELECT r.prise FROM t;
