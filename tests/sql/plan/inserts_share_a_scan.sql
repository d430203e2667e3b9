CREATE TABLE orders (usr VARCHAR, amount BIGINT, note VARCHAR) WITH (connector='file', format='json', path='orders.ndjson');
CREATE TABLE totals (usr VARCHAR, total BIGINT) WITH (connector='file', format='csv', path='out');
CREATE TABLE notes (note VARCHAR) WITH (connector='file', path='notes.ndjson');
EXECUTE STATEMENT SET BEGIN
INSERT INTO totals SELECT usr, amount FROM orders;
INSERT INTO notes SELECT note FROM orders WHERE note IS NOT NULL;
END;
