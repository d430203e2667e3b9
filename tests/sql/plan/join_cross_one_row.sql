CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT o.usr, t.total FROM orders o CROSS JOIN (SELECT SUM(amount) AS total FROM orders) t;
