CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW v AS SELECT usr,
  amount FROM orders; DROP TABLE orders; CREATE TABLE orders (usr VARCHAR) WITH (connector='file', path='x.ndjson'); SELECT * FROM v;
