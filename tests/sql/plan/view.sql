CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW big (who, n) AS (SELECT usr, amount FROM orders WHERE amount > 100);
SELECT who FROM big WHERE n < 500;
