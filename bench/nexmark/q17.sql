-- sink: auction BIGINT, dy VARCHAR, total BIGINT, r1 BIGINT, r2 BIGINT, r3 BIGINT, minp BIGINT, maxp BIGINT, avgp DOUBLE, sump BIGINT
SELECT auction, DATE_FORMAT(rt, 'yyyy-MM-dd') AS dy, COUNT(*) AS total,
  COUNT(*) FILTER (WHERE price < 10000) AS r1,
  COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS r2,
  COUNT(*) FILTER (WHERE price >= 1000000) AS r3,
  MIN(price) AS minp, MAX(price) AS maxp, AVG(price) AS avgp, SUM(price) AS sump
FROM bid GROUP BY auction, DATE_FORMAT(rt, 'yyyy-MM-dd')
