CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT 1 FROM orders a JOIN (SELECT usr FROM orders) b USING (amount);
