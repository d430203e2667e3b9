CREATE TABLE t (a INT AUTO_INCREMENT) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a VARCHAR) WITH (connector='file', format='json', path='out');
CREATE TABLE u (b INT) WITH (connector='file', path='x.ndjson');
INSERT INTO t SELECT UUID() FROM u;
