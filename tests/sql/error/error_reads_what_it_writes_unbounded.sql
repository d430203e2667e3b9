CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
CREATE TABLE t (usr VARCHAR) WITH (connector='file', path='t.ndjson');
INSERT INTO t SELECT usr FROM clicks; SELECT * FROM t;
