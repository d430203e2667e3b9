CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR, price DECIMAL(10,2)) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE big (a VARCHAR) WITH (connector='file', path='big.ndjson') AS SELECT usr FROM orders;
-- way out:
CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR, price DECIMAL(10,2)) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE big WITH (connector='file', path='big.ndjson') AS SELECT CAST(usr AS VARCHAR) AS a FROM orders;
