CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, note, amount, COUNT(*) FROM orders GROUP BY usr, CUBE (note, amount);
