-- sink: auction BIGINT, bidder BIGINT, price BIGINT, category BIGINT, name VARCHAR, state VARCHAR
SELECT B.auction, B.bidder, B.price, A.category, P.name, P.state
FROM bid B JOIN auction A ON B.auction = A.id JOIN person P ON A.seller = P.id
WHERE A.category = 10 AND P.state = 'OR'
