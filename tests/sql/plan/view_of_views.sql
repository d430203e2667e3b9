CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', path='orders.ndjson');
CREATE VIEW a AS SELECT usr, amount + 1 AS n FROM orders;
CREATE VIEW b AS SELECT usr, n FROM a WHERE n > 3;
CREATE VIEW c AS SELECT a.usr FROM a JOIN b ON a.usr = b.usr;
SELECT c.usr, b.n FROM c JOIN b ON c.usr = b.usr JOIN a ON a.usr = b.usr;
