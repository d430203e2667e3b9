WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r;
-- way out:
CREATE TABLE g (n BIGINT) WITH (connector='datagen', fields.n.kind='sequence', rows=5);
SELECT n + 1 AS n FROM g;
