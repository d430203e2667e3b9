-- sink: auction BIGINT, bidder BIGINT, price BIGINT, datetime BIGINT, extra VARCHAR, dt VARCHAR, hm VARCHAR
SELECT auction, bidder, price, datetime, extra, DATE_FORMAT(rt, 'yyyy-MM-dd') AS dt, DATE_FORMAT(rt, 'HH:mm') AS hm FROM bid
