-- options: changes
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, COUNT(*) FROM orders GROUP BY usr ORDER BY 2;
