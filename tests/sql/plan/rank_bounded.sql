CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, ROW_NUMBER() OVER (ORDER BY amount) AS n FROM orders;
