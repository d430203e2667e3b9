CREATE OR REPLACE TABLE t (a INT) WITH (connector='file', path='x.ndjson');
-- way out:
DROP TABLE IF EXISTS t;
CREATE TABLE t (a INT) WITH (connector='file', path='x.ndjson');
