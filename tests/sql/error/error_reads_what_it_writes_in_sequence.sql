CREATE TABLE t (usr VARCHAR) WITH (connector='file', path='t', format='json');
INSERT INTO t VALUES ('a');
INSERT INTO t SELECT UPPER(usr) FROM t;
