CREATE TABLE t (r ROW<price INT, b INT>) WITH (connector='file', path='t'); SELECT r.prise FROM t;
