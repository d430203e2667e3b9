CREATE TABLE orders (usr VARCHAR, amount BIGINT, ts TIMESTAMP(3), twice AS amount * 2, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', format='json', path='orders.ndjson');
ALTER TABLE orders ADD (c INT, d AS amount + no_such);
