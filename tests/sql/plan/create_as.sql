CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, note VARCHAR, price DECIMAL(10,2)) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE big WITH (connector='file', format='csv', path='big') AS
  SELECT usr, amount * 2 AS "Twice it", NULL AS nothing, ARRAY[price] AS prices, ROW(usr, note) AS "order" FROM orders WHERE amount > 3;
SHOW CREATE TABLE big;
DESCRIBE big;
