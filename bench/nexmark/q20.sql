-- sink: auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, bts BIGINT, extra VARCHAR, itemname VARCHAR, description VARCHAR, initialbid BIGINT, reserve BIGINT, ats BIGINT, expires BIGINT, seller BIGINT, category BIGINT
SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.datetime AS bts, B.extra,
  A.itemname, A.description, A.initialbid, A.reserve, A.datetime AS ats, A.expires, A.seller, A.category
FROM bid B JOIN auction A ON B.auction = A.id WHERE A.category = 10
