
CREATE TABLE a (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='in_a.ndjson', rate_limit=100);
CREATE TABLE copy_a (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='copy_a');
CREATE TABLE sum_a (k VARCHAR, s BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH (connector='file', format='json', path='sum_a', mode='upsert');

CREATE TABLE b (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='in_b.ndjson', rate_limit=100);
CREATE TABLE copy_b (k VARCHAR, v BIGINT) WITH (connector='file', format='json', path='copy_b');
CREATE TABLE sum_b (k VARCHAR, s BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH (connector='file', format='json', path='sum_b', mode='upsert');

INSERT INTO copy_a SELECT k, v FROM a;
INSERT INTO sum_a SELECT k, SUM(v), COUNT(*) FROM a GROUP BY k;

INSERT INTO copy_b SELECT k, v FROM b;
INSERT INTO sum_b SELECT k, SUM(v), COUNT(*) FROM b GROUP BY k;
