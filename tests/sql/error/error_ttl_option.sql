CREATE TABLE t (usr VARCHAR) WITH (connector='file', path='t.ndjson', state_ttl='3600');
-- way out:
CREATE TABLE t (usr VARCHAR) WITH (connector='file', path='t.ndjson', state_ttl='1 h');
