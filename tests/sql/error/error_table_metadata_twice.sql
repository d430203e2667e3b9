CREATE TABLE k (a BIGINT, p INT METADATA FROM 'partition') WITH (connector='kafka', brokers='h:1', topic='x', format='json', metadata.p='partition');
-- way out:
CREATE TABLE k (a BIGINT, p INT METADATA FROM 'partition') WITH (connector='kafka', brokers='h:1', topic='x', format='json');
