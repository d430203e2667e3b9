CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
SELECT usr, n FROM (SELECT usr, COUNT(*) AS n, DENSE_RANK() OVER w AS r FROM clicks GROUP BY usr WINDOW w AS (ORDER BY COUNT(*) DESC)) WHERE r <= 10;
