CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW v AS SELECT usr FROM orders; CREATE VIEW w AS SELECT usr FROM v; CREATE OR REPLACE VIEW v AS SELECT usr FROM w; SELECT * FROM v;
