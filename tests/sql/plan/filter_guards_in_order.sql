CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT * FROM orders WHERE amount <> 0 AND 10 / amount > 1 AND TRUE;
