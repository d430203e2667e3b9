-- sink: auction BIGINT, price BIGINT, bidder BIGINT, datetime BIGINT, extra VARCHAR
SELECT auction, price, bidder, datetime, extra FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rn FROM bid) T
WHERE rn <= 10
