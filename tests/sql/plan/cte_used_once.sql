CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
WITH big AS (SELECT usr, amount FROM orders WHERE amount > 100) SELECT usr FROM big WHERE usr <> 'x';
