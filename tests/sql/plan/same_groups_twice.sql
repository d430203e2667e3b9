CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE a (usr VARCHAR, n BIGINT) WITH (connector='file', path='a.ndjson'); CREATE TABLE b (usr VARCHAR, n BIGINT) WITH (connector='file', path='b.ndjson');
INSERT INTO a SELECT usr, COUNT(*) FROM orders GROUP BY usr; INSERT INTO b SELECT usr, SUM(amount) FROM orders GROUP BY usr;
