CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW big AS SELECT * FROM orders WHERE amount > 3;
SHOW TABLES; SHOW VIEWS; SHOW TABLES LIKE '%ord_rs'; SHOW CREATE TABLE orders; SHOW CREATE VIEW big; DROP VIEW big; SHOW TABLES;
