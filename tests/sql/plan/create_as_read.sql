CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR, price DECIMAL(10,2)) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE big WITH (connector='file', path='big.ndjson') AS SELECT usr, amount FROM orders;
CREATE TABLE IF NOT EXISTS big WITH (connector='file', path='big.ndjson') AS SELECT note FROM orders;
SELECT COUNT(*) AS n FROM big;
