CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE IF NOT EXISTS orders (other INT) WITH (connector='file', path='x.ndjson'); DESCRIBE orders;
