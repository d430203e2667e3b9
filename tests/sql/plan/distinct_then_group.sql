CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, note, COUNT(*) FROM (SELECT DISTINCT usr, note FROM orders) GROUP BY usr, note;
