CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE t (a BIGINT, b AS a + 1) WITH (connector='file', path='t.ndjson'); INSERT INTO t (a, b) SELECT amount, amount FROM orders;
