CREATE TABLE a (k BIGINT, x BIGINT, y BIGINT, s VARCHAR, unused VARCHAR) WITH (connector='file', format='json', path='a.ndjson');
CREATE TABLE b (k BIGINT, z BIGINT, w VARCHAR) WITH (connector='file', format='json', path='b.ndjson');
CREATE TABLE c (z BIGINT, v BIGINT) WITH (connector='file', format='json', path='c.ndjson');
-- folded constants, conditions below the joins they need none of, columns nobody reads not decoded, joins left to right as written
SELECT a.k, a.x + 1 + 2 * 3 AS f, c.v FROM a JOIN b ON a.k = b.k JOIN c ON b.z = c.z WHERE a.x > 10 - 3 AND b.w LIKE 'q%' AND a.y + c.v > 5 AND c.v <> 0;
SELECT a.k FROM c JOIN b ON c.z = b.z JOIN a ON a.k = b.k WHERE a.x = 1;
-- what can fail stays above the join that may drop its row, and behind its guard; what cannot goes below
SELECT a.k FROM a JOIN b ON a.k = b.k WHERE b.z > 0 AND 10 / a.x > 1 AND a.y = 3;
SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.x <> 0 AND 10 / a.x > 1;
-- the preserved side of an outer join is filtered before it, the other one behind it
SELECT a.k, b.w FROM a LEFT JOIN b ON a.k = b.k WHERE a.x > 3 AND b.z > 4;
-- one value in two places, each behind its guard
SELECT CASE WHEN x <> 0 THEN 10 / x ELSE 0 END AS p, CASE WHEN x <> 0 THEN 10 / x + 1 ELSE 0 END AS q FROM a WHERE UPPER(s) <> 'A';
-- a condition on the key goes below the groups, one on what is counted cannot; through a view and a union, too
SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) WHERE k > 3 AND n > 2;
SELECT k FROM (SELECT k, x FROM a UNION ALL SELECT k, z FROM b) WHERE x = 7 AND 1 = 1;
SELECT k FROM a WHERE 1 = 2 OR (x > 5 OR FALSE);
