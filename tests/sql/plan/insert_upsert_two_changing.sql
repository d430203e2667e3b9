CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
CREATE TABLE totals (usr VARCHAR, total BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', format='csv', path='out', mode='upsert');
INSERT INTO totals SELECT usr, COUNT(*) FROM clicks GROUP BY usr;
INSERT INTO totals SELECT url, COUNT(*) FROM clicks GROUP BY url;
