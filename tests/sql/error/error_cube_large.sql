CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT 1 FROM orders GROUP BY CUBE (usr, amount, note, usr, amount, note, usr);
