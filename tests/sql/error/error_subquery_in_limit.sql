CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT id FROM users LIMIT (SELECT COUNT(*) FROM orders);
