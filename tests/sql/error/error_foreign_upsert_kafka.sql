CREATE TABLE x (a BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH (connector='upsert-kafka', topic='x');
