CREATE TABLE t (a INT PRIMARY KEY) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED) WITH (connector='file', path='x.ndjson');
