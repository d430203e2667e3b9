CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SET batch_rows = 1; SET 'on_eval_error' = 'null'; SET TIME ZONE 'Europe/Berlin'; SHOW batch_rows; SET; RESET batch_rows; SHOW timezone; SELECT usr FROM orders;
