CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
CREATE TABLE t (url VARCHAR, n BIGINT, PRIMARY KEY (url) NOT ENFORCED) WITH (connector='file', path='t.ndjson', mode='upsert');
INSERT INTO t SELECT usr, n FROM (SELECT COALESCE(usr, 'x') AS url, usr, COUNT(*) AS n FROM clicks GROUP BY usr);
