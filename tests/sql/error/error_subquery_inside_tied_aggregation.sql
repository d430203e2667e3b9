CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT id, (SELECT COUNT(*) + (SELECT COUNT(*) FROM orders) FROM orders o WHERE o.usr = u.id) AS n FROM users u;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT id, (SELECT COUNT(*) FROM orders o WHERE o.usr = u.id) + (SELECT COUNT(*) FROM orders) AS n FROM users u;
