CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT a.usr, b.note FROM orders a JOIN orders b ON a.usr = b.note;
