CREATE TABLE out (k BIGINT, v VARCHAR) WITH (connector='kafka', brokers='b:1', topic='t', key='v,k');
ALTER TABLE out DROP COLUMN k;
-- way out:
CREATE TABLE out (k BIGINT, v VARCHAR) WITH (connector='kafka', brokers='b:1', topic='t', key='v,k');
ALTER TABLE out SET (key = 'v');
ALTER TABLE out DROP COLUMN k;
