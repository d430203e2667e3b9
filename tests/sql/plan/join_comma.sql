CREATE TABLE flights (id BIGINT NOT NULL, tail VARCHAR, dest VARCHAR, year INT) WITH (connector='file', path='flights.csv');
CREATE TABLE planes (tail VARCHAR NOT NULL, year BIGINT, seats INT) WITH (connector='file', path='planes.csv');
CREATE TABLE airports (faa VARCHAR NOT NULL, name VARCHAR) WITH (connector='file', path='airports.csv');
SELECT f.id, a.name FROM flights f, planes p, airports a WHERE f.tail = p.tail AND a.faa = f.dest AND p.seats > 3;
