CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT u.id, (SELECT COUNT(*) FROM orders o WHERE o.usr = u.id) AS n, (SELECT COALESCE(SUM(o.amount), 0) + 1 FROM orders o WHERE o.usr = u.id) AS s FROM users u;
