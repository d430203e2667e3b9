CREATE TABLE o (k VARCHAR, at DOUBLE, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='o.ndjson');
