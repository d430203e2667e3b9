CREATE TABLE t WITH (connector='datagen') AS SELECT 1 AS a;
