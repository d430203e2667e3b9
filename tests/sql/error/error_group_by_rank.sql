CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT ROW_NUMBER() OVER (ORDER BY usr) FROM orders GROUP BY 1;
