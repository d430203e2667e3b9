CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW v AS SELECT usr FROM orders;
ALTER TABLE orders RENAME TO v;
