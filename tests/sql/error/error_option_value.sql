CREATE TABLE t (a INT) WITH (connector='file', path='x', format='jsn');
-- way out:
CREATE TABLE t (a INT) WITH (connector='file', path='x', format='json');
