CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT id, amount FROM users u LEFT JOIN orders o ON u.id = o.usr AND o.amount = (SELECT MAX(amount) FROM orders);
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT id, amount FROM users u LEFT JOIN (SELECT usr, amount FROM orders WHERE amount = (SELECT MAX(amount) FROM orders)) AS o ON u.id = o.usr;
