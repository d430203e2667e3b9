CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE t (a BIGINT, b BIGINT NOT NULL) WITH (connector='file', path='t.ndjson'); INSERT INTO t (a) SELECT amount FROM orders;
