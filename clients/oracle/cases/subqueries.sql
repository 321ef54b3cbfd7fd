-- Unqualified names mean the inner table's columns.
SELECT count(*) FROM facts WHERE i = ANY (SELECT i FROM facts WHERE j > 2);
SELECT count(*) FROM facts WHERE i <> ANY (SELECT i FROM facts WHERE j > 2);
SELECT count(*) FROM facts WHERE i <> ALL (SELECT i FROM facts WHERE j > 2);
SELECT count(*) FROM facts WHERE i <> ALL (SELECT i FROM facts WHERE j > 2 AND i IS NOT NULL);
SELECT count(*) FROM facts WHERE i >= ALL (SELECT i FROM facts WHERE i IS NOT NULL);
SELECT count(*) FROM facts WHERE i > ANY (SELECT i FROM facts WHERE b);
SELECT count(*) FROM facts WHERE i = ALL (SELECT i FROM facts WHERE false);
SELECT count(*) FROM facts WHERE i = ANY (SELECT i FROM nothing);
SELECT count(*) FROM facts WHERE NOT (i < SOME (SELECT i FROM facts WHERE j = 1));
SELECT count(*) FROM facts AS f WHERE i = ANY (SELECT i FROM others AS o WHERE o.id = f.id);
SELECT count(*) FROM facts AS f WHERE i > ALL (SELECT i FROM others AS o WHERE o.s = f.s);
SELECT id, i = ANY (SELECT i FROM facts WHERE j > 2), i > ALL (SELECT i FROM others WHERE i IS NOT NULL) FROM facts;
SELECT id, i IN (SELECT i FROM others), i NOT IN (SELECT i FROM others), i IN (SELECT i FROM nothing) FROM facts;
SELECT i IN (SELECT i FROM others) IS NULL FROM facts;
SELECT id FROM facts WHERE (i IN (SELECT i FROM others)) IS NULL;
SELECT id FROM facts WHERE (i NOT IN (SELECT i FROM others WHERE i IS NOT NULL)) IS NULL;
SELECT id FROM facts WHERE j = 1 OR i NOT IN (SELECT i FROM others);
SELECT id FROM facts WHERE j = 1 OR i NOT IN (SELECT i FROM others WHERE i IS NOT NULL);
SELECT id FROM facts WHERE NOT (j = 1 AND i IN (SELECT i FROM others));
SELECT id FROM facts AS f WHERE i NOT IN (SELECT i FROM others AS o WHERE o.id = f.id);
SELECT id FROM facts AS f WHERE i NOT IN (SELECT i FROM others AS o WHERE o.id < f.j);
SELECT id FROM facts WHERE CASE WHEN i IN (SELECT i FROM others) THEN j = 1 ELSE j = 2 END;
SELECT id, CASE WHEN i IN (SELECT i FROM others) THEN 'in' WHEN i NOT IN (SELECT i FROM others) THEN 'out' ELSE 'unknown' END FROM facts;
SELECT id, EXISTS (SELECT 1 FROM others), NOT EXISTS (SELECT 1 FROM nothing) FROM facts;
SELECT f.id, EXISTS (SELECT 1 FROM others AS o WHERE o.i = f.i), EXISTS (SELECT 1 FROM others AS o WHERE o.i > f.i) FROM facts AS f;
SELECT count(*) FILTER (WHERE i IN (SELECT i FROM others)) FROM facts;
SELECT sum(CASE WHEN EXISTS (SELECT 1 FROM others AS o WHERE o.i = f.i) THEN 1 ELSE 0 END) FROM facts AS f;
SELECT i IN (SELECT i FROM others WHERE i IS NOT NULL), count(*) FROM facts GROUP BY 1;
SELECT id FROM facts ORDER BY i IN (SELECT i FROM others WHERE i IS NOT NULL), id;
SELECT count(*) FROM facts WHERE (SELECT max(i) FROM others) > ANY (SELECT i FROM few);
SELECT count(*) FROM facts WHERE s IN (SELECT s FROM others WHERE i IN (SELECT i FROM few));
SELECT (SELECT i FROM facts);
SELECT j, count(*) FROM facts GROUP BY j HAVING count(*) > ALL (SELECT id FROM others WHERE id < 5);
SELECT d IN (SELECT d FROM others), p IN (SELECT d FROM others), i IN (SELECT p FROM few) FROM facts;
SELECT (SELECT min(i) FROM others WHERE ((d = ANY (SELECT x1.d FROM others x1)) AND p < t.p)) FROM others t;
SELECT f.id FROM facts f RIGHT JOIN others o ON f.l = o.i AND (f.p > ANY (SELECT x0.p FROM facts x0));
SELECT CASE WHEN ((SELECT min(day) FROM others WHERE p = t.p) IN (SELECT x0.day FROM others x0)) THEN 1.5 END FROM facts t
;
SELECT count(*), count(c0), sum(c1) FROM (SELECT day AS c0, id AS c1 FROM facts ORDER BY - i, id OFFSET 50) v WHERE v.c1 IS NOT NULL;
SELECT id FROM facts WHERE id IN (SELECT id FROM facts ORDER BY d DESC NULLS LAST, id OFFSET 40);
SELECT id, k IN (SELECT count(*) FROM others x WHERE x.d = t.d), k NOT IN (SELECT count(*) FROM others x WHERE x.d = t.d) FROM others t;
SELECT id FROM others t WHERE k IN (SELECT count(*) FROM others x WHERE x.d = t.d);
SELECT id FROM others t WHERE k NOT IN ((SELECT count(*) FROM others x WHERE x.d = t.d));
SELECT id FROM others t WHERE EXISTS (SELECT count(*) FROM others x WHERE x.d = t.d);
SELECT id, NOT EXISTS (SELECT max(k) FROM others x WHERE x.d = t.d AND x.id < 0) FROM others t;
SELECT id, EXISTS (SELECT 1 FROM others x WHERE x.d = t.d HAVING count(*) > 1), NOT EXISTS (SELECT x.c FROM (SELECT 1 AS c FROM others y WHERE y.d = t.d HAVING count(*) = 0) x) FROM others t;
SELECT id FROM others t WHERE NOT EXISTS (SELECT 1 FROM others x WHERE x.d = t.d HAVING max(x.k) > t.k);
SELECT id, k = ANY (SELECT count(*) FROM others x WHERE x.d = t.d), k > ALL (SELECT count(*) FROM others x WHERE x.d = t.d), k <= ANY (SELECT max(x.k) FROM others x WHERE x.d = t.d AND x.id <> t.id) FROM others t;
SELECT id, k IN (SELECT max(k) FROM others x WHERE x.d = t.d) IS NULL FROM others t;
SELECT id FROM others t WHERE k IN (SELECT c FROM (SELECT count(*) AS c FROM others x WHERE x.d = t.d) y);
SELECT id FROM others t WHERE k IN (SELECT count(*) FROM others x WHERE x.d = t.d HAVING count(*) > 0);
SELECT id FROM others t WHERE k IN (SELECT count(*) FROM others x WHERE x.d = t.d OFFSET 1);
SELECT id FROM others t WHERE k IN (SELECT count(*) FROM others x WHERE x.d = t.d GROUP BY x.d);
SELECT id FROM others t WHERE k IN (SELECT count(*) FROM others x) OR EXISTS (SELECT count(*) FROM nothing);
SELECT id FROM others t WHERE EXISTS (SELECT count(*) FROM others x WHERE x.d = t.d UNION ALL SELECT 1 FROM nothing)
-- By another comparison than equality.
SELECT id, (SELECT count(*) FROM others AS x WHERE x.i < facts.i) FROM facts;
SELECT id, (SELECT sum(x.i) FROM others AS x WHERE x.i <= facts.i AND x.s IS NOT NULL) + 1 FROM facts;
SELECT id FROM facts WHERE (SELECT count(*) FROM others AS x WHERE x.day > facts.day) < 5;
SELECT id, (SELECT max(x.at) FROM others x WHERE x.at < facts.at), (SELECT min(x.i + facts.i) FROM others x WHERE x.id = facts.id) FROM facts;
SELECT (SELECT count(*) FROM others AS x WHERE x.i < facts.i) AS k, count(*) FROM facts GROUP BY 1;
SELECT max((SELECT count(*) FROM others AS x WHERE x.s <> facts.s)) FROM facts;
SELECT id, (SELECT count(DISTINCT x.s) FILTER (WHERE x.b) FROM others AS x WHERE x.i IS DISTINCT FROM facts.i) FROM facts;
SELECT id, (SELECT coalesce(max(x.d), facts.j) * 2 FROM others AS x WHERE x.i > facts.i) FROM facts;
SELECT id, (SELECT string_agg(x.s, ',' ORDER BY x.id) FROM others AS x WHERE x.id < facts.id AND x.id < 6) FROM facts;
SELECT id, (SELECT count(*) FROM others AS x WHERE x.p BETWEEN facts.p AND facts.q) FROM facts;
SELECT id, (SELECT bool_or(x.b) FROM others AS x WHERE x.s LIKE facts.s || '%') FROM facts;
SELECT f.id, o.id FROM facts f JOIN others o ON f.id = o.id WHERE (SELECT count(*) FROM few w WHERE w.i < f.i OR w.i > o.i) > 1;
SELECT id, EXISTS (SELECT 1 FROM others x WHERE x.i < facts.i), (SELECT count(*) FROM others x WHERE x.i < facts.i) IN (SELECT i FROM few) FROM facts;
SELECT id, (SELECT avg(x.p) FROM others AS x WHERE x.day < facts.day) > (SELECT avg(x.p) FROM others AS x WHERE x.day > facts.day) FROM facts;

-- An aggregate that is joined, beside a predicate of three values in the same condition.
SELECT t.id FROM facts t WHERE CASE WHEN t.i = 1000000 THEN (SELECT bool_and(x.b) FROM others x WHERE x.b OR x.id = t.i) WHEN t.day NOT IN (SELECT day FROM others) THEN t.b END ORDER BY 1;
SELECT t.id FROM facts t WHERE CASE WHEN NULL::boolean THEN (SELECT max(x.id) FROM others x WHERE x.b OR x.id = t.i) = 1 WHEN t.day NOT IN (SELECT day FROM others WHERE day IS NOT NULL) THEN t.b END ORDER BY 1;
SELECT t.id FROM facts t WHERE (SELECT count(*) FROM others x WHERE x.id < t.id) > 2 OR t.day NOT IN (SELECT day FROM others) OR EXISTS (SELECT 1 FROM others x WHERE x.i = t.i) ORDER BY 1;
SELECT t.id FROM facts t ORDER BY (SELECT count(*) FROM others x WHERE x.id < t.id), t.i NOT IN (SELECT i FROM few), EXISTS (SELECT 1 FROM few x WHERE x.i = t.i), t.id;
SELECT max(s) FROM others WHERE (id % NULL::int) NOT IN (SELECT x.id FROM facts x);
-- Tables that have the name of a column of the query within.
SELECT i.id, (SELECT max(o.id) FROM others AS o WHERE o.i > i.j) FROM facts AS i;
SELECT i.id FROM facts AS i WHERE EXISTS (SELECT 1 FROM others AS o WHERE o.id = i.id) ORDER BY i.id;
SELECT i.*, ARRAY(SELECT i.id FROM others ORDER BY 1) FROM facts AS i;
SELECT i.id, z.id FROM facts AS i, LATERAL (SELECT o.id FROM others AS o WHERE o.id <= i.id) AS z;
SELECT i.nosuch FROM facts;
SELECT (SELECT max(id) FROM others WHERE id > i.nosuch) FROM facts AS i;
SELECT count(*) FROM facts HAVING 1 = 1;
SELECT 1 FROM facts WHERE false HAVING true;
SELECT 1 FROM facts HAVING 1 > 2;
SELECT 'a' || 'b' FROM facts HAVING count(*) > 1;
-- Rows that are looked for in queries.
SELECT id, (i, j) IN (SELECT i, j FROM others), (i, j) NOT IN (SELECT i, j FROM others) FROM facts;
SELECT id FROM facts WHERE (i, j) IN (SELECT i, j FROM others);
SELECT id FROM facts WHERE (i, j) NOT IN (SELECT i, j FROM others);
SELECT id FROM facts WHERE NOT ((i, j) IN (SELECT i, j FROM others));
SELECT id FROM facts WHERE (i, j) NOT IN (SELECT i, j FROM others WHERE i IS NOT NULL AND j IS NOT NULL);
SELECT id FROM facts WHERE (i, j) NOT IN (SELECT i, j FROM others WHERE false);
SELECT f.id FROM facts AS f WHERE (f.i, f.j) IN (SELECT o.i, o.j FROM others AS o WHERE o.id = f.id);
SELECT f.id FROM facts AS f WHERE (i, j) IN (SELECT o.i, o.j FROM others AS o WHERE o.id <= f.id);
SELECT f.id FROM facts AS f WHERE (i, j) NOT IN (SELECT o.i, o.j FROM others AS o WHERE o.id <= f.id);
SELECT f.id FROM facts AS f WHERE (i, j) IN (SELECT o.i, max(o.j) FROM others AS o WHERE o.id <= f.id GROUP BY o.i);
SELECT id FROM facts WHERE (i, j) IN (SELECT 1, 2 UNION SELECT 3, 1) OR j = 3;
SELECT count(*) FROM facts WHERE (i, j) IN (VALUES (1, 2), (3, 1));
SELECT (1, 2) IN (SELECT 1, 2), (1, NULL) IN (SELECT 1, 2), (1, NULL::int) IN (SELECT 2, 2), row(1, 2) NOT IN (SELECT 1, 3);
SELECT CASE WHEN (i, s) IN (SELECT i, s FROM others) THEN 'in' ELSE 'out' END FROM facts;
SELECT id FROM facts WHERE (i, j, 1) IN (SELECT i, j, 1 FROM others);
SELECT id FROM facts WHERE (i::text, j) IN (SELECT i::text, j::bigint FROM others);
SELECT (i, j) IN (SELECT i FROM others) FROM facts;
SELECT (i, j) IN (SELECT i, j, 1 FROM others) FROM facts;

-- Aggregates of columns of the query around are that query's.
SELECT (SELECT max(0) FILTER (WHERE b)) FROM facts;
SELECT (SELECT max(facts.id)) FROM facts;
SELECT (SELECT max(facts.id) FROM others) FROM facts;
SELECT id, (SELECT max(o.id + facts.id) FROM others o) FROM facts ORDER BY id;
SELECT id, (SELECT sum(o.id) FILTER (WHERE o.id > facts.id) FROM others o) FROM facts ORDER BY id;
SELECT (SELECT array_agg(facts.id) FROM others) FROM facts;
SELECT (SELECT json_agg(facts.id) FROM others) FROM facts;
SELECT (SELECT string_agg(facts.s, ',' ORDER BY facts.s) FROM others) FROM facts;
SELECT id, ARRAY(SELECT facts.id FROM others o WHERE o.id < 3) FROM facts ORDER BY id;
SELECT id, ARRAY(SELECT facts.id + o.id FROM others o WHERE o.id < 3 ORDER BY 1) FROM facts ORDER BY id;
SELECT i, (SELECT grouping(facts.i)) FROM facts GROUP BY ROLLUP (i);
SELECT i, (SELECT grouping(facts.i) FROM others LIMIT 1) FROM facts GROUP BY ROLLUP (i);
SELECT i, (SELECT grouping(o.i) FROM others o GROUP BY o.i LIMIT 1) FROM facts GROUP BY i ORDER BY 1;

-- Columns of the result that are one expression are two keys.
SELECT i AS x, i AS y FROM facts GROUP BY x, ROLLUP (y);
SELECT i AS x, facts.i AS y, count(*) FROM facts GROUP BY GROUPING SETS ((x), (y), (1, 2));
SELECT i, i, count(*) FROM facts GROUP BY i, ROLLUP (i) ORDER BY 1;
SELECT f.i AS x, o.i AS y, count(*) FROM facts f JOIN others o USING (id) GROUP BY x, ROLLUP (y) ORDER BY 1, 2, 3;

-- A row beside a query of one row.
SELECT (1, 2) = (SELECT 1, 2), (1, 2) < (SELECT 1, 3), (1, 2) <> (SELECT 1, NULL::int);
SELECT (SELECT 1, 2) >= (1, 1);
SELECT id, (i, j) = (SELECT i, j FROM others WHERE id = 3) FROM facts ORDER BY id;
SELECT id FROM facts WHERE (i, j) = (SELECT max(i), min(j) FROM others) ORDER BY id;
SELECT id FROM facts WHERE (i, j) <= (SELECT max(i), min(j) FROM others) ORDER BY id;
SELECT id FROM facts WHERE row(i, s) > (SELECT i, s FROM others WHERE id = 3) ORDER BY id;
SELECT (1, 2) = (SELECT 1, 2 WHERE false), (1, 2) = (SELECT NULL::int, 3);
SELECT (1, 2) = (SELECT id, i FROM others);
SELECT (1, 2) = (SELECT 1);
SELECT (1, 2) = (SELECT 1, 2, 3);
SELECT (1, 2) = (VALUES (1, 2));
SELECT id, (i, j) = (SELECT o.i, o.j FROM others o WHERE o.id = facts.id) FROM facts ORDER BY id;
UPDATE facts SET i = i WHERE (i, j) = (SELECT 1, 2) AND false;

-- A query as a value is NULL where it has no row, also of columns that are never NULL.
SELECT (SELECT 1 WHERE false), coalesce((SELECT 1 WHERE false), 7), (SELECT 1 WHERE false) IS NULL, (SELECT 'x' WHERE false) || 'y';
SELECT (SELECT id FROM facts WHERE id = -5), (SELECT id FROM facts WHERE id = -5) IS NULL, (SELECT 5 FROM facts WHERE id < 0);
SELECT id, (SELECT 5 FROM others WHERE id < 0) IS NULL, coalesce((SELECT 5 FROM others WHERE id < 0), id) FROM facts ORDER BY id;
SELECT id FROM facts WHERE (SELECT 5 FROM others WHERE id < 0) IS NULL ORDER BY id;
SELECT id FROM facts WHERE id = (SELECT 5 FROM others WHERE id < 0) OR id = 1;
SELECT (SELECT count(*) FROM facts WHERE id < 0 HAVING count(*) > 3), (SELECT count(*) FROM facts WHERE id < 0 GROUP BY i);
SELECT (SELECT count(*) FROM facts WHERE id < 0), (SELECT 3), (SELECT x FROM (VALUES (1)) AS t (x));
SELECT (SELECT 1 FROM facts WHERE id < 0 UNION ALL SELECT 2), (SELECT 1 UNION ALL SELECT 2 OFFSET 2), (SELECT 1 LIMIT 0);
SELECT id, (SELECT 1 FROM others o WHERE o.id = facts.id + 100) IS NULL, coalesce((SELECT 1 FROM others o WHERE o.id = facts.id + 100), 0) FROM facts ORDER BY id;
SELECT (SELECT '{"a": 1}'::jsonb WHERE false), (SELECT DATE '2020-01-01' WHERE false), (SELECT 1.50 WHERE false), (SELECT ARRAY[1] WHERE false);
SELECT ((SELECT (SELECT 1 WHERE false)) IS NULL), (SELECT coalesce((SELECT 1 WHERE false), 3) WHERE true);
SELECT sum((SELECT 1 WHERE false)), count((SELECT 1 WHERE false)) FROM facts;
WITH x AS (SELECT (SELECT 1 WHERE false) AS a) SELECT a, a IS NULL FROM x;
SELECT x IS NULL FROM (VALUES ((SELECT 1 WHERE false)), (2)) AS t (x) ORDER BY 1;

-- What is made of columns that are never NULL can be NULL.
SELECT count(*) FROM facts WHERE nullif(id, 1) NOT IN (SELECT o.id + 100 FROM others o);
SELECT count(*) FROM facts WHERE (id + NULL::int) NOT IN (SELECT o.id FROM others o);
SELECT count(*) FROM facts WHERE (id % NULL::int) NOT IN (SELECT o.id FROM others o WHERE false);
SELECT count(*) FROM facts WHERE id + 1 NOT IN (SELECT o.id FROM others o);
SELECT count(*) FROM facts WHERE id::bigint NOT IN (SELECT o.id FROM others o);
SELECT count(*) FROM facts WHERE id NOT IN (SELECT nullif(o.id, 3) FROM others o);
SELECT count(*) FROM facts f LEFT JOIN others o ON o.id = f.id WHERE nullif(o.id, 2) NOT IN (SELECT 9) AND o.id > 0;

-- An aggregate without GROUP BY has a row also of no rows; conditions without columns are about that row.
SELECT * FROM (SELECT count(*) AS c FROM facts) AS q WHERE (SELECT false);
SELECT * FROM (SELECT count(*) AS c FROM facts) AS q WHERE (SELECT i FROM facts WHERE id = -1) = 1;
SELECT * FROM (SELECT count(*) AS c FROM facts) AS q WHERE c NOT IN (7, NULL);
SELECT count(*) FROM facts HAVING (SELECT false);
SELECT count(*) FROM facts HAVING (SELECT true);
SELECT * FROM (SELECT i, count(*) AS c FROM facts GROUP BY ROLLUP (i)) AS q WHERE (SELECT false);
SELECT * FROM (SELECT i, count(*) AS c FROM facts GROUP BY GROUPING SETS ((i), ())) AS q WHERE (SELECT true) AND c > 3 ORDER BY 1, 2;
SELECT * FROM (SELECT i, count(*) AS c FROM facts GROUP BY i) AS q WHERE (SELECT false);
SELECT f.id, q.c FROM facts f CROSS JOIN (SELECT count(*) AS c FROM others) AS q WHERE (SELECT false);
SELECT f.id, q.c FROM facts f LEFT JOIN (SELECT count(*) AS c FROM others) AS q ON (SELECT false) ORDER BY 1 LIMIT 3;

-- What determines what within LATERAL does so for one row beside it.
SELECT x.rn, count(*) FROM facts f, LATERAL (SELECT o.id AS oid, row_number() OVER (ORDER BY o.id) AS rn FROM others o WHERE o.id >= f.id) AS x GROUP BY x.rn ORDER BY 1;
SELECT x.i, count(*) FROM facts f, LATERAL (SELECT o.i, count(*) AS c FROM others o WHERE o.id >= f.id GROUP BY o.i) AS x GROUP BY x.i ORDER BY 1;
SELECT x.i, x.j, count(*) FROM facts f, LATERAL (SELECT DISTINCT o.i, o.j FROM others o WHERE o.id >= f.id) AS x GROUP BY x.i, x.j ORDER BY 1, 2;
SELECT count(*) FROM facts f, LATERAL (SELECT o.id AS oid, row_number() OVER (ORDER BY o.id) AS rn FROM others o WHERE o.id >= f.id) AS x GROUP BY x.rn, x.oid ORDER BY 1;
SELECT DISTINCT x.rn FROM facts f, LATERAL (SELECT o.id AS oid, row_number() OVER (ORDER BY o.id) AS rn FROM others o WHERE o.id >= f.id) AS x ORDER BY 1;
SELECT x.rn, count(*) FROM facts f LEFT JOIN LATERAL (SELECT o.i, row_number() OVER (ORDER BY o.id) AS rn FROM others o WHERE o.id = f.id) AS x ON true GROUP BY x.rn ORDER BY 1;
SELECT x.rn, count(*) FROM (SELECT id, i, row_number() OVER (ORDER BY id) AS rn FROM facts) AS x JOIN others o ON o.id <= x.id GROUP BY x.rn ORDER BY 1 LIMIT 5;
-- Aggregates with a FILTER over an aggregate whose answer is known at once.
SELECT avg(n) FILTER (WHERE n > 1) FROM (SELECT count(*) AS n FROM facts) q;
SELECT avg(n) FILTER (WHERE n > 1), count(n) FROM (SELECT count(*) AS n FROM facts) q;
SELECT max(n) FILTER (WHERE n < 0), count(*) FROM (SELECT count(*) AS n FROM facts) q WHERE n >= 0;
SELECT count(*) FILTER (WHERE n > 1) FROM (SELECT count(*) AS n FROM facts) q;
SELECT count(*), count(c0), count(*) FILTER (WHERE c0 IS NULL), sum(1) FILTER (WHERE false) FROM (SELECT 1 FROM facts WHERE false HAVING true) AS q(c0);
SELECT avg(n) FILTER (WHERE n > 1) FROM (SELECT count(*) AS n FROM facts UNION ALL SELECT count(*) FROM others) q;
-- DISTINCT and ORDER BY within others.
SELECT count(*) FROM (SELECT DISTINCT i::text FROM facts ORDER BY i::text) AS q(c0);
SELECT * FROM (SELECT DISTINCT i::text, lower(s) FROM facts ORDER BY lower(s), i::text LIMIT 5) AS q;
SELECT DISTINCT i, 1 FROM facts ORDER BY 1;
SELECT DISTINCT 2, i, 1 FROM facts ORDER BY 2 DESC NULLS LAST;
SELECT DISTINCT *, abs(i) FROM (SELECT i, j FROM facts) q ORDER BY abs(i), j;
SELECT count(*) FROM (SELECT DISTINCT i + 1, abs(j) FROM facts ORDER BY abs(j) DESC NULLS LAST, i + 1) AS q;
-- Subqueries as values in statements that read the catalog.
SELECT (SELECT 'public'::regnamespace::text);
SELECT (SELECT count(*) FROM pg_class WHERE relname = 'facts'), (SELECT count(*) > 0 FROM pg_proc);
SELECT relname, (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND attnum > 0) FROM pg_class c WHERE relname IN ('facts', 'others') ORDER BY 1;
SELECT relname, (SELECT nspname FROM pg_namespace WHERE oid = c.relnamespace) FROM pg_class c WHERE relname = 'facts';
SELECT (SELECT count(*) FROM (SELECT 'public'::regnamespace::text) AS q(c0) WHERE c0 = x) FROM (VALUES ('public'::text), (NULL)) AS v(x);
SELECT (SELECT count(*) FROM (SELECT count(*) FROM pg_class c WHERE c.relname = 'tt') AS q(c0) WHERE c0 = x) FROM (VALUES ('0'::bigint), (NULL)) AS v(x);
