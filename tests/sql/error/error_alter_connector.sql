CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', format='json', path='orders.ndjson');
ALTER TABLE orders SET (connector = 'print');
