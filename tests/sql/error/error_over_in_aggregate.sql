CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT SUM(ROW_NUMBER() OVER (ORDER BY usr)) FROM orders;
