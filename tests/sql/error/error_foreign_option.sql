CREATE TABLE x (a BIGINT) WITH (connector='file', path='x.ndjson', 'json.ignore-parse-errors'='true');
-- way out:
CREATE TABLE x (a BIGINT) WITH (connector='file', path='x.ndjson', on_error='skip');
SELECT a FROM x;
