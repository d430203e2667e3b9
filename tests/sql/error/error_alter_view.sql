CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW v AS SELECT usr FROM orders;
ALTER TABLE v RENAME TO w;
-- way out:
CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW v AS SELECT usr FROM orders;
CREATE OR REPLACE VIEW v AS SELECT amount FROM orders;
