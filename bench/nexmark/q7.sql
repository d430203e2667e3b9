-- sink: auction BIGINT, price BIGINT, bidder BIGINT, datetime BIGINT, extra VARCHAR
SELECT B.auction, B.price, B.bidder, B.datetime, B.extra
FROM bid B JOIN (
  SELECT MAX(price) AS maxprice, window_time AS wt
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(rt), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end, window_time) M
ON B.price = M.maxprice AND B.rt BETWEEN M.wt - INTERVAL '9.999' SECOND AND M.wt
