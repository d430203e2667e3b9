SELECT * FROM (SELECT 1, 2) AS t (x, x);
