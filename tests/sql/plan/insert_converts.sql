CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE t (a INTEGER, b DOUBLE, c DECIMAL(10,2)) WITH (connector='file', path='t.ndjson');
INSERT INTO t SELECT amount, amount, amount FROM orders;
