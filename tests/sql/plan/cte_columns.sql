CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
WITH a (x, y) AS (SELECT usr, amount FROM orders), b AS (SELECT x FROM a) SELECT b.x FROM b;
