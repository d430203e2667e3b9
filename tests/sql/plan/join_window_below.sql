-- only below the join somebody reckons with time, and the input ends: a hash join, its probe side held back
CREATE TABLE bid (auction BIGINT, price BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH (connector='file', format='json', path='bid.ndjson');
SELECT b.auction, b.price FROM bid b JOIN (
  SELECT MAX(price) AS m, window_time AS wt FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, window_time) t
ON b.price = t.m AND b.at BETWEEN t.wt - INTERVAL '9.999' SECOND AND t.wt;
