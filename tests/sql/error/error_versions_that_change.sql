CREATE TABLE o (id BIGINT, cur VARCHAR, at TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR at AS at) WITH (connector='file', path='o.ndjson', follow='true');
CREATE TABLE r (cur VARCHAR, at TIMESTAMP(3), rate BIGINT, PRIMARY KEY (cur) NOT ENFORCED, WATERMARK FOR at AS at)
  WITH (connector='kafka', brokers='localhost:9092', topic='rates', format='debezium-json');
SELECT o.id, r.rate FROM o JOIN r FOR SYSTEM_TIME AS OF o.at AS r ON o.cur = r.cur;
-- way out:
CREATE TABLE o (id BIGINT, cur VARCHAR, p AS PROCTIME()) WITH (connector='file', path='o.ndjson');
CREATE TABLE r (cur VARCHAR, rate BIGINT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector='file', path='r.ndjson');
SELECT o.id, r.rate FROM o JOIN r FOR SYSTEM_TIME AS OF o.p AS r ON o.cur = r.cur;
