CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
SELECT COUNT(*) FROM clicks GROUP BY TUMBLE(at, INTERVAL '1' HOUR);
