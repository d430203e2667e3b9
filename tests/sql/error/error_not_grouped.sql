CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, note, COUNT(*)
FROM orders GROUP BY usr;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, note, COUNT(*) FROM orders GROUP BY usr, note;
-- way out:
CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
SELECT usr, MAX(note), COUNT(*) FROM orders GROUP BY usr;
