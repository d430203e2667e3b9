CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW v AS SELECT * FROM orders; INSERT INTO v SELECT * FROM orders;
