CREATE TABLE flights (id BIGINT NOT NULL, tail VARCHAR, dest VARCHAR, year INT) WITH (connector='file', path='flights.csv');
CREATE TABLE planes (tail VARCHAR NOT NULL, year BIGINT, seats INT) WITH (connector='file', path='planes.csv');
CREATE TABLE airports (faa VARCHAR NOT NULL, name VARCHAR) WITH (connector='file', path='airports.csv');
SELECT * FROM flights JOIN planes USING (tail);
