CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR, price DECIMAL(10,2)) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE big WITH (connector='file', path='big.ndjson') AS SELECT o.usr, p.usr FROM orders o JOIN orders p ON o.amount = p.amount;
-- way out:
CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR, price DECIMAL(10,2)) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE big WITH (connector='file', path='big.ndjson') AS SELECT o.usr, p.usr AS other FROM orders o JOIN orders p ON o.amount = p.amount;
