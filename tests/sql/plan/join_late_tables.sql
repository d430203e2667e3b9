-- options: changes
CREATE TABLE late (v BIGINT, k VARCHAR) WITH (connector='file', format='json', path='late');
CREATE TABLE late_prices (p BIGINT) WITH (connector='file', format='json', path='late_prices');
CREATE TABLE t (k VARCHAR NOT NULL, at TIMESTAMP(3), v BIGINT, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='x', late_table='late');
CREATE TABLE r (k VARCHAR, at TIMESTAMP(3), p BIGINT, PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='y', late_table='late_prices');
SELECT t.at, r.k FROM t LEFT JOIN r ON t.k = r.k AND r.at BETWEEN t.at AND t.at + INTERVAL '1' HOUR
UNION ALL SELECT t.at, r.k FROM t JOIN r FOR SYSTEM_TIME AS OF t.at ON t.k = r.k;
