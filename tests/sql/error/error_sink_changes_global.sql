CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
CREATE TABLE n (n BIGINT) WITH (connector='file', path='n.ndjson');
INSERT INTO n SELECT COUNT(*) FROM clicks;
-- way out:
CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
CREATE TABLE n (n BIGINT) WITH (connector='file', path='n.ndjson');
INSERT INTO n SELECT COUNT(*) FROM clicks EMIT ON CLOSE;
