CREATE TABLE o (k VARCHAR, n BIGINT RENAMED FROM k) WITH (connector='file', format='json', path='o.ndjson');
