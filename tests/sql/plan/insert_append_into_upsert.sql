CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE totals (usr VARCHAR, total BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', format='csv', path='out', mode='upsert');
INSERT INTO totals SELECT usr, amount FROM orders;
