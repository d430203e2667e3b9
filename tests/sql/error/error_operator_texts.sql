CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT note + amount FROM orders;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT note || amount FROM orders;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT CAST(note AS BIGINT) + amount FROM orders;
