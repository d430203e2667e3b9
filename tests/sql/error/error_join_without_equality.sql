CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT 1 FROM orders a JOIN orders b ON a.amount > b.amount;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT 1 FROM orders a JOIN orders b ON a.usr = b.usr AND a.amount > b.amount;
