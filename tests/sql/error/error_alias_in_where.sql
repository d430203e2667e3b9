CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT amount * 2 AS twice FROM orders WHERE twice > 3;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT amount * 2 AS twice FROM orders WHERE amount * 2 > 3;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT * FROM (SELECT amount * 2 AS twice FROM orders) WHERE twice > 3;
