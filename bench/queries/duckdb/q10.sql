SELECT auction, bidder, price, datetime, extra, strftime(rt, '%Y-%m-%d') AS dt, strftime(rt, '%H:%M') AS hm FROM bid
