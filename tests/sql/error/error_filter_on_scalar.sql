CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT COALESCE(usr, 'a') FILTER (WHERE amount > 1) FROM orders;
