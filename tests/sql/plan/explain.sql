CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
EXPLAIN SELECT usr FROM orders WHERE amount > 1; EXPLAIN PLAN FOR SELECT 1;
