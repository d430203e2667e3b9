-- sink: auction BIGINT, bidder BIGINT, price DECIMAL(23,3), kind VARCHAR, datetime BIGINT, extra VARCHAR, c_counts BIGINT
SELECT auction, bidder, 0.908 * price AS price,
  CASE WHEN HOUR(rt) >= 8 AND HOUR(rt) <= 18 THEN 'dayTime'
       WHEN HOUR(rt) <= 6 OR HOUR(rt) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS kind,
  datetime, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
