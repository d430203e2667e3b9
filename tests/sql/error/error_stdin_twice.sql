CREATE TABLE x (a BIGINT) WITH (connector='file', format='json', path='-');
CREATE TABLE y (a BIGINT) WITH (connector='file', format='json', path='-');
SELECT x.a FROM x JOIN y ON x.a = y.a;
-- way out:
CREATE TABLE x (a BIGINT) WITH (connector='file', format='json', path='x.ndjson');
CREATE TABLE y (a BIGINT) WITH (connector='file', format='json', path='y.ndjson');
SELECT x.a FROM x JOIN y ON x.a = y.a;
