CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW v AS SELECT usr FROM orders; CREATE OR REPLACE VIEW v AS SELECT note FROM orders; SELECT * FROM v;
