CREATE TABLE t (a VARCHAR COLLATE nocase) WITH (connector='file', path='x.ndjson');
-- way out:
CREATE TABLE t (a VARCHAR) WITH (connector='file', path='x.ndjson');
