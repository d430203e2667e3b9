CREATE TABLE src (k BIGINT, j BIGINT) WITH (connector='file', format='json', path='s', follow='true');
CREATE TABLE dim (j BIGINT, name VARCHAR) WITH (connector='file', format='json', path='d', follow='true');
CREATE TABLE moves (k BIGINT, n BIGINT, name VARCHAR, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='m', mode='upsert');
CREATE TABLE stays (k BIGINT, n BIGINT, m BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (connector='file', format='json', path='n', mode='upsert');
CREATE VIEW g AS SELECT k, MAX(j) AS j, COUNT(*) AS n FROM src GROUP BY k;
EXECUTE STATEMENT SET BEGIN
INSERT INTO moves SELECT g.k, g.n, d.name FROM g JOIN (SELECT j, MAX(name) AS name FROM dim GROUP BY j) d ON g.j = d.j;
INSERT INTO stays SELECT g.k, g.n, h.m FROM g JOIN (SELECT j, COUNT(*) AS m FROM dim GROUP BY j) h ON g.k = h.j;
END;
