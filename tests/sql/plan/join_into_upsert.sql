CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
CREATE TABLE top (usr VARCHAR, n BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', format='csv', path='out', mode='upsert');
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
INSERT INTO top SELECT c.usr, c.n FROM (SELECT usr, COUNT(*) AS n FROM clicks GROUP BY usr) c JOIN (SELECT DISTINCT usr FROM orders) o ON c.usr = o.usr;
