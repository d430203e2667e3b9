CREATE TABLE k (a BIGINT, p INT METADATA FROM 'partitoin') WITH (connector='kafka', brokers='h:1', topic='x', format='json');
-- way out:
CREATE TABLE k (a BIGINT, p INT METADATA FROM 'partition') WITH (connector='kafka', brokers='h:1', topic='x', format='json');
