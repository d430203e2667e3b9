CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
WITH orders AS (SELECT usr FROM orders WHERE amount > 1) SELECT * FROM orders;
