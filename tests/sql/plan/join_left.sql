CREATE TABLE flights (id BIGINT NOT NULL, tail VARCHAR, dest VARCHAR, year INT) WITH (connector='file', path='flights.csv');
CREATE TABLE planes (tail VARCHAR NOT NULL, year BIGINT, seats INT) WITH (connector='file', path='planes.csv');
CREATE TABLE airports (faa VARCHAR NOT NULL, name VARCHAR) WITH (connector='file', path='airports.csv');
SELECT f.id, a.name FROM flights f LEFT JOIN airports a ON f.dest = a.faa AND a.name <> 'x' AND f.id > 3 WHERE f.year = 2013 AND a.name IS NULL;
