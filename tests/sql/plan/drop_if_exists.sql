CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
DROP TABLE IF EXISTS orders, nothing; DROP VIEW IF EXISTS v; SHOW TABLES;
