CREATE TABLE o (cur VARCHAR, t TIMESTAMP(3), v INT, WATERMARK FOR t AS t) WITH (connector='file', path='o.ndjson', follow='true');
CREATE TABLE rates (cur VARCHAR, kind INT, at TIMESTAMP(3), rate BIGINT, PRIMARY KEY (cur, kind) NOT ENFORCED, WATERMARK FOR at AS at) WITH (connector='file', path='r.ndjson', follow='true');
CREATE TABLE raw (cur VARCHAR, at TIMESTAMP(3), rate BIGINT, WATERMARK FOR at AS at) WITH (connector='file', path='raw.ndjson', follow='true');
CREATE TABLE still (cur VARCHAR, rate BIGINT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector='file', path='raw.ndjson', follow='true');
SELECT n FROM (SELECT cur, COUNT(*) AS n FROM o GROUP BY cur) AS c JOIN still FOR SYSTEM_TIME AS OF PROCTIME() AS r ON r.cur = c.cur;
-- way out:
CREATE TABLE o (cur VARCHAR, t TIMESTAMP(3), v INT, WATERMARK FOR t AS t) WITH (connector='file', path='o.ndjson', follow='true');
CREATE TABLE rates (cur VARCHAR, kind INT, at TIMESTAMP(3), rate BIGINT, PRIMARY KEY (cur, kind) NOT ENFORCED, WATERMARK FOR at AS at) WITH (connector='file', path='r.ndjson', follow='true');
CREATE TABLE raw (cur VARCHAR, at TIMESTAMP(3), rate BIGINT, WATERMARK FOR at AS at) WITH (connector='file', path='raw.ndjson', follow='true');
CREATE TABLE still (cur VARCHAR, rate BIGINT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector='file', path='raw.ndjson', follow='true');
SELECT r.rate, COUNT(*) AS n FROM o JOIN still FOR SYSTEM_TIME AS OF PROCTIME() AS r ON r.cur = o.cur GROUP BY r.rate;
