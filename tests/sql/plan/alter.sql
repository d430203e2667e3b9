CREATE TABLE orders (usr VARCHAR NOT NULL, amount BIGINT, twice AS amount * 2, PRIMARY KEY (usr) NOT ENFORCED)
  WITH (connector='file', format='json', path='orders.ndjson');
ALTER TABLE orders ADD (note VARCHAR, loud AS UPPER(note));
ALTER TABLE orders RENAME usr TO "user";
ALTER TABLE orders DROP COLUMN twice;
ALTER TABLE orders RENAME COLUMN amount TO total;
ALTER TABLE orders MODIFY total DECIMAL(10, 2) NOT NULL;
ALTER TABLE orders SET (path = 'other.ndjson', mode = 'upsert');
ALTER TABLE orders RESET (format);
ALTER TABLE orders RENAME TO sales;
ALTER TABLE IF EXISTS orders DROP COLUMN nothing;
SHOW CREATE TABLE sales;
SELECT "user", total, loud FROM sales;
