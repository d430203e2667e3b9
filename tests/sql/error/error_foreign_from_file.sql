SELECT * FROM 'x.csv';
-- way out:
CREATE TABLE x (a BIGINT) WITH (path = 'x.csv', connector = 'file');
SELECT a FROM x;
