CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT /*+ OPTIONS('o'='1d') */ usr FROM orders;
