CREATE TABLE t (a INT) WITH (connector='file', format='json'); SELECT a FROM t;
