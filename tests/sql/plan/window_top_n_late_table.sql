CREATE TABLE late (v BIGINT, ts TIMESTAMP(3)) WITH (connector='file', path='late', format='json');
CREATE TABLE t (k VARCHAR, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector='file', path='x', format='json', follow=TRUE, late_table='late');
-- the first row of each key and window; what comes for a window that is over goes to the table
SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY v) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))) WHERE n = 1;
