SET state_ttl = '1 h';
CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson', follow=TRUE);
CREATE TABLE t (usr VARCHAR, n BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH (connector='file', path='t.ndjson', mode='upsert');
INSERT INTO t SELECT usr, COUNT(*) FROM clicks GROUP BY usr;
