CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TEMPORARY VIEW v AS SELECT usr FROM orders UNION ALL (SELECT note FROM orders LIMIT 3);
SELECT COUNT(*) FROM v;
