-- The three inputs of NEXMark. run_ours.py puts the data's folder in for ${DATA}. Event time is made from the epoch milliseconds of
-- `datetime`, as in the other engines; a WATERMARK comes four seconds behind.
CREATE TABLE person (id BIGINT, name VARCHAR, emailaddress VARCHAR, creditcard VARCHAR, city VARCHAR, state VARCHAR, datetime BIGINT, extra VARCHAR,
  rt AS TO_TIMESTAMP_LTZ(datetime, 3), WATERMARK FOR rt AS rt - INTERVAL '4' SECOND)
  WITH (connector='file', format='json', path='${DATA}/person.ndjson');
CREATE TABLE auction (id BIGINT, itemname VARCHAR, description VARCHAR, initialbid BIGINT, reserve BIGINT, datetime BIGINT, expires BIGINT, seller BIGINT,
  category BIGINT, extra VARCHAR, rt AS TO_TIMESTAMP_LTZ(datetime, 3), WATERMARK FOR rt AS rt - INTERVAL '4' SECOND)
  WITH (connector='file', format='json', path='${DATA}/auction.ndjson');
CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, datetime BIGINT, extra VARCHAR,
  rt AS TO_TIMESTAMP_LTZ(datetime, 3), WATERMARK FOR rt AS rt - INTERVAL '4' SECOND)
  WITH (connector='file', format='json', path='${DATA}/bid.ndjson');
-- What q13 looks up: not one of the three, and for tests alone.
CREATE TABLE side_input (key BIGINT, value VARCHAR) WITH (connector='file', format='csv', header='true', path='${DATA}/side_input.csv');
