CREATE SOURCE x (a BIGINT) WITH (connector='file') FORMAT PLAIN ENCODE JSON;
-- way out:
CREATE TABLE x (a BIGINT) WITH (connector='file', path='x.ndjson');
SELECT a FROM x;
