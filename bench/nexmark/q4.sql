-- sink: category BIGINT, avgp DOUBLE
SELECT category, AVG(final) AS avgp FROM (
  SELECT A.id, A.category, MAX(B.price) AS final
  FROM auction A JOIN bid B ON A.id = B.auction
  WHERE B.datetime BETWEEN A.datetime AND A.expires
  GROUP BY A.id, A.category) Q
GROUP BY category
