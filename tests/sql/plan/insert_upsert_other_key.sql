CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
CREATE TABLE t (usr VARCHAR, url VARCHAR, n BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', path='t.ndjson', mode='upsert');
INSERT INTO t SELECT usr, url, COUNT(*) FROM clicks GROUP BY usr, url;
