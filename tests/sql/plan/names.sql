CREATE TABLE t ("order" INT, dateTime TIMESTAMP(3), value INT, "two words" INT) WITH (connector='file', path='t.ndjson');
SELECT "order", DATETIME, t.value, T."two words" AS `x y` FROM t;
