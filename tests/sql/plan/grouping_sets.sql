CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, note, GROUPING(usr, note) AS g, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((usr, note), usr, ());
