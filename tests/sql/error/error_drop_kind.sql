CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW v AS SELECT 1; DROP TABLE v;
-- way out:
CREATE VIEW v AS SELECT 1; DROP VIEW v;
