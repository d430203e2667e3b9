-- sink: auction BIGINT, bidder BIGINT, datetime BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, extra VARCHAR
SELECT auction, bidder, datetime, price, channel, url, extra FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY rt DESC) AS rn FROM bid) T
WHERE rn <= 1
