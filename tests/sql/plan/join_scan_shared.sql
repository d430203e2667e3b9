-- nothing ends: both sides come from one scan
CREATE TABLE live (auction BIGINT, price BIGINT) WITH (connector='file', format='json', path='live.ndjson', follow=TRUE);
SELECT b.price FROM live b JOIN (SELECT auction, MAX(price) AS m FROM live GROUP BY auction) t ON b.auction = t.auction AND b.price = t.m;
