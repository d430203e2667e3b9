CREATE TABLE t (a INT, b AS NULL) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT, b AS CAST(NULL AS INT)) WITH (connector='file', path='x.ndjson');
