CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='datagen');
CREATE TABLE totals WITH (connector='file', path='totals.ndjson') AS SELECT usr, SUM(amount) AS total FROM orders GROUP BY usr;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT) WITH (connector='datagen');
CREATE TABLE totals (PRIMARY KEY (usr) NOT ENFORCED) WITH (connector='file', path='totals.ndjson', mode='upsert')
  AS SELECT usr, SUM(amount) AS total FROM orders GROUP BY usr;
