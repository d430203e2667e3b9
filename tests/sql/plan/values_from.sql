SELECT x + 1 AS y FROM (VALUES (1), (2)) AS v (x) WHERE x > 1;
