CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE g (a BIGINT) WITH (connector='datagen'); INSERT INTO g SELECT amount FROM orders;
