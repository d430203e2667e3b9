CREATE TABLE t (a INT AUTO_INCREMENT) WITH (connector='file', path='x');
-- way out:
CREATE TABLE t (a VARCHAR) WITH (connector='file', path='x');
CREATE TABLE u (b INT) WITH (connector='file', path='x');
INSERT INTO t SELECT UUID() FROM u;
