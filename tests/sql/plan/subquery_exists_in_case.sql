CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT id, CASE WHEN EXISTS (SELECT 1 FROM orders o WHERE o.usr = users.id) THEN 1 ELSE 0 END AS f FROM users;
