CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
CREATE TABLE p (usr VARCHAR, n BIGINT) WITH (connector='print');
INSERT INTO p SELECT usr, COUNT(*) FROM clicks GROUP BY usr;
