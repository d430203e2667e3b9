-- A join of input that ends, with nobody above who asks for time, has no late rows.
CREATE TABLE late (v BIGINT) WITH (connector='file', format='json', path='late');
CREATE TABLE t (k VARCHAR NOT NULL, at TIMESTAMP(3), v BIGINT, WATERMARK FOR at AS at) WITH (connector='file', format='json', path='x', late_table='late');
SELECT a.at FROM t a JOIN t b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL '1' HOUR;
