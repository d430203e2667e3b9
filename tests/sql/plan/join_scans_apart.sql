CREATE TABLE bid (auction BIGINT, price BIGINT, url VARCHAR) WITH (connector='file', format='json', path='bid.ndjson');
-- the probe side has a scan of its own, so that it can be held back
SELECT b.url FROM bid b JOIN (SELECT auction, MAX(price) AS m FROM bid GROUP BY auction) t ON b.auction = t.auction AND b.price = t.m;
-- here the build side is the left one
SELECT t.auction, b.url FROM (SELECT auction, MAX(price) AS m FROM bid GROUP BY auction) t RIGHT JOIN bid b ON b.auction = t.auction;
