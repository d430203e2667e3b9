SELECT B.auction, B.bidder, B.price, B.datetime, S.value FROM bid B JOIN side_input S ON B.auction % 1000 = S.key
