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
