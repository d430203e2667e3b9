SELECT seller, id, AVG(final) OVER (PARTITION BY seller ORDER BY closed, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS avgp FROM (
  SELECT A.seller, A.id, A.expires AS closed, MAX(B.price) AS final
  FROM auction A JOIN bid B ON A.id = B.auction
  WHERE B.datetime BETWEEN A.datetime AND A.expires
  GROUP BY A.id, A.seller, A.expires) Q
