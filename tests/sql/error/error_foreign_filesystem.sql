CREATE TABLE x (a BIGINT) WITH (connector='filesystem', path='x.ndjson');
-- way out:
CREATE TABLE x (a BIGINT) WITH (connector='file', path='x.ndjson');
SELECT a FROM x;
