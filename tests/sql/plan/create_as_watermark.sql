CREATE TABLE orders (usr VARCHAR, ts TIMESTAMP(3)) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE copy (WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', format='json', path='copy.ndjson', state_ttl='2 h') AS SELECT usr, ts FROM orders;
SHOW CREATE TABLE copy;
