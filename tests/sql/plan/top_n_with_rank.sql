CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
SELECT * FROM (SELECT usr, url, RANK() OVER (PARTITION BY usr ORDER BY at) AS r FROM clicks) WHERE r < 3 AND usr <> 'x';
