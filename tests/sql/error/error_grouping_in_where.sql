CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT 1 FROM orders WHERE GROUPING(usr) = 1 GROUP BY usr;
