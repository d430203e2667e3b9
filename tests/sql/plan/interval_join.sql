CREATE TABLE a (id BIGINT, t TIMESTAMP(3), WATERMARK FOR t AS t) WITH (connector='file', path='a.ndjson', follow='true');
CREATE TABLE b (id BIGINT, ms BIGINT, t AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR t AS t - INTERVAL '4' SECOND) WITH (connector='file', path='b.ndjson', follow='true');
CREATE TABLE c (id BIGINT, t TIMESTAMP(3), WATERMARK FOR t AS t) WITH (connector='file', path='c.ndjson');
SELECT a.id, c.t FROM a JOIN c ON a.id = c.id AND a.t >= c.t - INTERVAL '1' HOUR AND c.t > a.t - INTERVAL '5' MINUTE
UNION ALL SELECT x.id, x.t FROM a x JOIN c ON x.id = c.id AND c.t <= x.t;
