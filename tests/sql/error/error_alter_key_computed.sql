CREATE TABLE k (id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (connector='file', path='x.ndjson');
ALTER TABLE k MODIFY id AS v + 1;
-- way out:
CREATE TABLE k (id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (connector='file', path='x.ndjson');
ALTER TABLE k ADD w AS v + 1;
SELECT id, w FROM k WHERE id IS NOT NULL;
