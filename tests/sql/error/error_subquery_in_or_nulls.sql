CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT id FROM users WHERE age > 3 OR id IN (SELECT usr FROM orders);
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT id FROM users WHERE age > 3 OR EXISTS (SELECT 1 FROM orders WHERE usr = id);
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT id FROM users WHERE age > 3 OR id IN (SELECT usr FROM orders WHERE usr IS NOT NULL);
