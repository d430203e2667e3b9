CREATE TABLE o (cur VARCHAR, t TIMESTAMP(3), v INT, WATERMARK FOR t AS t) WITH (connector='file', path='o.ndjson', follow='true');
CREATE TABLE rates (cur VARCHAR, kind INT, at TIMESTAMP(3), rate BIGINT, PRIMARY KEY (cur, kind) NOT ENFORCED, WATERMARK FOR at AS at) WITH (connector='file', path='r.ndjson', follow='true');
CREATE TABLE raw (cur VARCHAR, at TIMESTAMP(3), rate BIGINT, WATERMARK FOR at AS at) WITH (connector='file', path='raw.ndjson', follow='true');
CREATE TABLE still (cur VARCHAR, rate BIGINT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector='file', path='raw.ndjson', follow='true');
SELECT v FROM o JOIN rates FOR SYSTEM_TIME AS OF o.t AS r ON r.cur = o.cur;
-- way out:
CREATE TABLE o (cur VARCHAR, t TIMESTAMP(3), v INT, WATERMARK FOR t AS t) WITH (connector='file', path='o.ndjson', follow='true');
CREATE TABLE rates (cur VARCHAR, kind INT, at TIMESTAMP(3), rate BIGINT, PRIMARY KEY (cur, kind) NOT ENFORCED, WATERMARK FOR at AS at) WITH (connector='file', path='r.ndjson', follow='true');
CREATE TABLE raw (cur VARCHAR, at TIMESTAMP(3), rate BIGINT, WATERMARK FOR at AS at) WITH (connector='file', path='raw.ndjson', follow='true');
CREATE TABLE still (cur VARCHAR, rate BIGINT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector='file', path='raw.ndjson', follow='true');
SELECT v FROM o JOIN rates FOR SYSTEM_TIME AS OF o.t AS r ON r.cur = o.cur AND r.kind = v;
