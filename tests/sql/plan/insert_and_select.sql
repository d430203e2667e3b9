CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE totals (usr VARCHAR, total BIGINT) WITH (connector='file', format='csv', path='out');
INSERT INTO totals SELECT usr, amount FROM orders;
SELECT COUNT(*) FROM orders;
