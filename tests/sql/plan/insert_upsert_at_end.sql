CREATE TABLE clicks (usr VARCHAR NOT NULL, url VARCHAR, at TIMESTAMP(3)) WITH (connector='file', format='json', path='clicks.ndjson');
CREATE TABLE t (usr VARCHAR, url VARCHAR, n BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', path='t.ndjson', mode='upsert');
CREATE TABLE sorted (usr VARCHAR, url VARCHAR, n BIGINT, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', path='s.ndjson', mode='upsert');
CREATE TABLE as_they_come (usr VARCHAR, url VARCHAR, PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', path='a.ndjson', mode='upsert');
INSERT INTO t SELECT usr, url, COUNT(*) FROM clicks GROUP BY usr, url;
INSERT INTO sorted SELECT usr, url, COUNT(*) AS n FROM clicks GROUP BY usr, url ORDER BY n;
INSERT INTO as_they_come SELECT usr, url FROM clicks;
