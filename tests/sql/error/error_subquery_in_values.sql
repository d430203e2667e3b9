CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT x FROM (VALUES ((SELECT MAX(amount) FROM orders))) AS v (x);
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE users (id VARCHAR NOT NULL, age INT, city VARCHAR) WITH (connector='file', path='users.csv');
SELECT x FROM (SELECT (SELECT MAX(amount) FROM orders) AS x) AS v;
