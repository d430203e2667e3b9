CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, usr, COUNT(*), COUNT(note), 1, 2 FROM orders GROUP BY usr;
