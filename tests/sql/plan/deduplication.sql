CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
SELECT usr, url FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY usr ORDER BY at) AS rn FROM clicks) WHERE rn = 1;
