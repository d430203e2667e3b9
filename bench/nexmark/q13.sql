-- sink: auction BIGINT, bidder BIGINT, price BIGINT, datetime BIGINT, value VARCHAR
SELECT B.auction, B.bidder, B.price, B.datetime, S.value
FROM (SELECT *, PROCTIME() AS p FROM bid) B JOIN side_input FOR SYSTEM_TIME AS OF B.p AS S ON B.auction % 1000 = S.key
