CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
SELECT usr FROM (SELECT usr, ROW_NUMBER() OVER (ORDER BY at) AS rn FROM clicks) WHERE rn = 2;
