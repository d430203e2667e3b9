CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='datagen');
CREATE TEMPORARY TABLE totals (PRIMARY KEY (usr) NOT ENFORCED) COMMENT 'by user' WITH (connector='file', path='it''s.ndjson', mode='UPSERT') AS
  SELECT usr, SUM(amount) AS total FROM orders GROUP BY usr;
SHOW CREATE TABLE totals;
