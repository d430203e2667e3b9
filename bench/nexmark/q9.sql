-- sink: id BIGINT, seller BIGINT, category BIGINT, auction BIGINT, bidder BIGINT, price BIGINT, bts BIGINT
SELECT id, seller, category, auction, bidder, price, bts FROM (
  SELECT A.id, A.seller, A.category, B.auction, B.bidder, B.price, B.datetime AS bts,
         ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.datetime ASC) AS rn
  FROM auction A JOIN bid B ON A.id = B.auction
  WHERE B.datetime BETWEEN A.datetime AND A.expires) T
WHERE rn <= 1
