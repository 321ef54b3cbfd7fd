-- Columns of one name on several sides, conditions on one that is not shown.
SELECT q.s || f.s || o.p::text, f.s FROM facts f FULL JOIN others o ON f.id = o.id FULL JOIN others q ON o.id = q.id WHERE btrim(o.s) ILIKE '%b%';
SELECT o.at, (f.l + o.id), f.s FROM facts f FULL JOIN others o ON f.day = o.day WHERE btrim(o.s) ILIKE '%b%';
SELECT q.s, f.s, q.s || f.s || o.day::text FROM facts f FULL JOIN others o ON f.id = o.id FULL JOIN others q ON o.id = q.id WHERE upper(o.s) < 'B';
SELECT f.b, o.b AND q.b FROM facts f LEFT JOIN others o ON f.id = o.id LEFT JOIN others q ON o.i = q.id WHERE (o.s || q.s) IS NULL;
SELECT count(*), sum(f.id), max(q.s) FROM facts f FULL JOIN others o ON f.id = o.id FULL JOIN others q ON o.id = q.i WHERE coalesce(o.b, f.b);

-- Columns that joins share.
SELECT * FROM facts FULL JOIN others USING (id);
SELECT * FROM (SELECT j, id FROM facts) AS a RIGHT JOIN (SELECT i, id FROM others) AS b USING (id);
SELECT * FROM (SELECT j, id FROM facts) AS a JOIN (SELECT i, id FROM others) AS b USING (id);
SELECT id, j, a.id, b.id FROM (SELECT j, id FROM facts) AS a FULL JOIN (SELECT i AS j2, id FROM others WHERE id > 5) AS b USING (id) WHERE id > 2 ORDER BY 1;
SELECT id % 3, count(*), min(id) FROM facts FULL JOIN others USING (id) FULL JOIN (SELECT 3000 AS id) AS c USING (id) GROUP BY id % 3 ORDER BY 1;
SELECT j, i, count(*) FROM (SELECT j, i FROM facts) AS a LEFT JOIN (SELECT i, j FROM others) AS b USING (j, i) GROUP BY i, j;
SELECT DISTINCT id FROM (SELECT id FROM facts WHERE id < 9) AS a FULL JOIN (SELECT id FROM others WHERE id > 4) AS b USING (id) WHERE id IS NOT NULL;
SELECT upper(s), row_number() OVER (PARTITION BY s ORDER BY s) FROM (SELECT DISTINCT s FROM facts) AS a FULL JOIN (SELECT DISTINCT s FROM others) AS b USING (s);

-- Orders of subqueries.
SELECT * FROM (SELECT id, s FROM facts ORDER BY d DESC, id) AS x LIMIT 7;
SELECT id FROM (SELECT * FROM facts ORDER BY s NULLS FIRST, id DESC) AS x OFFSET 3 LIMIT 5;
SELECT string_agg(id::text, ',') FROM (SELECT id FROM facts ORDER BY d DESC, id) AS x;
SELECT b, array_agg(id), string_agg(s, '-') FROM (SELECT * FROM facts ORDER BY s, id) AS x GROUP BY b;
SELECT array_agg(k) FROM (SELECT DISTINCT j AS k FROM facts ORDER BY k DESC) AS x;
SELECT json_agg(id) FROM (SELECT id FROM facts ORDER BY 1 DESC LIMIT 4) AS x;
SELECT array_agg(id) FILTER (WHERE b), count(*) FROM (SELECT id, b FROM facts ORDER BY i, id) AS x

-- Keys that match NULLs beside keys that do not.
WITH n(x, y) AS (VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1)) SELECT * FROM n a JOIN n b ON a.x IS NOT DISTINCT FROM b.x WHERE a.y = b.y ORDER BY 1, 2, 3, 4;
WITH n(x, y) AS (VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1)) SELECT * FROM n a LEFT JOIN n b ON a.x IS NOT DISTINCT FROM b.x WHERE a.y = b.y ORDER BY 1, 2, 3, 4;
WITH n(x, y) AS (VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1)) SELECT * FROM n a JOIN n b ON a.x IS NOT DISTINCT FROM b.x JOIN n c ON c.y = b.y ORDER BY 1, 2, 3, 4, 5, 6;
WITH n(x, y) AS (VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1)) SELECT * FROM n a JOIN n b ON a.x = b.x JOIN n c ON c.y IS NOT DISTINCT FROM b.y ORDER BY 1, 2, 3, 4, 5, 6;
WITH n(x, y) AS (VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1)) SELECT * FROM n a, n b, n c WHERE a.x = b.x AND c.y IS NOT DISTINCT FROM b.y ORDER BY 1, 2, 3, 4, 5, 6;
WITH n(x, y) AS (VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1)) SELECT * FROM (SELECT x, y FROM n INTERSECT SELECT x, y FROM n) a JOIN n c ON a.x = c.x WHERE a.y = c.y ORDER BY 1, 2, 3, 4;
WITH n(x, y) AS (VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1)) SELECT * FROM (SELECT x, y FROM n INTERSECT ALL SELECT x, y FROM n) a JOIN n c ON a.x = c.x WHERE a.y = c.y ORDER BY 1, 2, 3, 4;
WITH n(x, y) AS (VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1)) SELECT * FROM n a JOIN n b ON a.x IS NOT DISTINCT FROM b.x AND a.y = b.y JOIN n c ON c.x IS NOT DISTINCT FROM a.x WHERE c.y = b.y ORDER BY 1, 2, 3, 4, 5, 6;
WITH n(x, y) AS (VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1)) SELECT * FROM (SELECT a.x AS ax, a.y AS ay, b.y AS by FROM n a JOIN n b ON a.x IS NOT DISTINCT FROM b.x) z WHERE ay = by AND EXISTS (SELECT 1 FROM n WHERE n.x = ax) ORDER BY 1, 2, 3;
SELECT id FROM facts a WHERE (a.i, a.j) IN (SELECT b.i, b.j FROM others b JOIN others c ON b.i IS NOT DISTINCT FROM c.i AND b.j = c.j) ORDER BY 1;
SELECT CASE WHEN o.b THEN o.d ELSE f.d END FROM facts f CROSS JOIN others o WHERE f.d = o.d AND (SELECT bool_or(x0.b) FROM facts x0 WHERE x0.b OR x0.q < o.p);
SELECT f.id, o.id FROM facts f CROSS JOIN others o WHERE f.i = o.i AND (SELECT bool_or(x0.b) FROM facts x0 WHERE x0.b OR x0.q < o.p) ORDER BY 1, 2;
SELECT f.id, o.id FROM facts f, others o WHERE f.i = o.i AND (SELECT max(x.q) FROM facts x WHERE x.i < o.i OR o.i IS NULL) > 0 ORDER BY 1, 2;
SELECT f.id, o.id, x.m FROM facts f, others o, LATERAL (SELECT max(y.id) AS m FROM facts y WHERE y.i < o.i OR o.i IS NULL) AS x WHERE f.i = o.i ORDER BY 1, 2;
