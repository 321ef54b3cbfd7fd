-- Found by PostgreSQL's regression files.
SELECT sum(n::float8) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM (VALUES (1, 1e20), (2, 1)) AS n(i, n);
SELECT avg(n::float8) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING), count(n::float8) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM (VALUES (1, 1e20), (2, 1), (3, NULL)) AS n(i, n);
SELECT stddev(n::float8) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING), var_pop(n::float8) OVER w, corr(n::float8, i) OVER w FROM (VALUES (1, 1e20), (2, 1), (3, 2)) AS n(i, n) WINDOW w AS (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
SELECT id, sum(d) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING), avg(d) FILTER (WHERE b) OVER (ORDER BY id ROWS 4 PRECEDING), sum(d) OVER (PARTITION BY j ORDER BY id RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM facts ORDER BY id;
SELECT id, sum(d) OVER (ORDER BY id ROWS BETWEEN 50 PRECEDING AND 1 PRECEDING), max(d) OVER (ORDER BY id ROWS 2 PRECEDING) FROM facts ORDER BY id;
SELECT to_timestamp(1e12), to_timestamp(-1e11), to_timestamp(1700000000.123456), to_timestamp(0), to_timestamp(id) FROM others ORDER BY id;
SELECT to_timestamp('NaN'::float);
SELECT to_timestamp(1e300);
SELECT date '1999-08-Jan';
SELECT date '08-Jan-1999', date 'Jan 8, 1999', date '1999-Jan-08', date 'January 8, 1999', date '8 Jan 1999';
SELECT interval '-1 days +1 hours', interval '1 day +02:03', interval '+1 day', interval '-1 day -2 hours +3 min';
SELECT json_build_object(array[1, 2], 1);
SELECT json_build_object(json '{"a":1}', 1);
SELECT jsonb_build_object(row(1, 2), 1);
SELECT array_to_json(array[jsonb '{"a":1}', jsonb '{"b":[2,3]}']), to_json(array[json '1', json '2']), to_jsonb(array[jsonb '{"a":1}']);
SELECT ('123'::jsonb)[0], ('[1, "2", null]'::jsonb)['1'], ('[1, "2", null]'::jsonb)[1][0], ('{"a":{"b":[1,2]}}'::jsonb)['a']['b'][1], ('[1,2]'::jsonb)[-1], ('{"a":1}'::jsonb)[0], ('{"1":5}'::jsonb)[1];

-- All columns of a table that is named with its schema.
SELECT few.* FROM public.few ORDER BY 1, 2, 3;
SELECT few.*, f.id FROM public.few JOIN facts f ON f.id = few.i ORDER BY 1, 2, 3;
SELECT few.i, count(few.*) FROM public.few GROUP BY 1 ORDER BY 1;
SELECT row_to_json(few) FROM public.few ORDER BY few.i, few.s;
SELECT (SELECT count(few.*) FROM public.few) FROM public.nothing;
SELECT few.* FROM public.nothing AS few;
SELECT '10e-70'::real;
SELECT '1e-40'::real, '-1e-45'::real;
SELECT CAST(s AS real) FROM (VALUES ('1.5'), ('1e-60')) AS v(s);

-- Recursion.
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x ORDER BY 1) SELECT * FROM x LIMIT 3;
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x LIMIT 10 OFFSET 1) SELECT * FROM x LIMIT 3;
WITH RECURSIVE x(n) AS (SELECT i FROM few WHERE i = 1 UNION ALL SELECT x.n+1 FROM few y LEFT JOIN x ON x.n = y.i WHERE n < 4) SELECT * FROM x;
WITH RECURSIVE x(n) AS (SELECT i FROM few WHERE i = 1 UNION ALL SELECT x.n+1 FROM x LEFT JOIN few y ON x.n = y.i WHERE n < 4) SELECT * FROM x;
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT count(*)::int FROM x) SELECT * FROM x LIMIT 3;
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT sum(n)::int FROM x GROUP BY n) SELECT * FROM x LIMIT 3;
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM (SELECT n FROM x ORDER BY n LIMIT 1) s WHERE n < 4) SELECT * FROM x;
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x WHERE n < 3 GROUP BY n) SELECT * FROM x;
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + (SELECT count(*)::int FROM few) FROM x WHERE n < 9) SELECT * FROM x ORDER BY 1 DESC LIMIT 2;
WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM x FOR UPDATE) SELECT * FROM x LIMIT 2;
WITH RECURSIVE x(id) AS (VALUES (1) UNION ALL SELECT (SELECT * FROM x) FROM x WHERE id < 5) SELECT * FROM x;

-- Functions that return rows within expressions, and where there can be none.
SELECT min(generate_series(1, 3));
SELECT count(generate_series(1, 3)), sum(unnest(array[1, 2]));
SELECT min(generate_series(1, 3)) OVER ();
SELECT i FROM (VALUES (1), (2)) v(i) ORDER BY i, generate_series(1, 3) DESC;
SELECT i, generate_series(1, 3) AS g FROM (VALUES (1), (2)) v(i) ORDER BY i, g DESC;
SELECT i FROM (VALUES (1), (2)) v(i) WHERE generate_series(1, 3) = 1;
SELECT i FROM (VALUES (1), (2)) v(i) GROUP BY i HAVING generate_series(1, 3) > 1;
SELECT CASE WHEN i > 1 THEN generate_series(1, 3) ELSE 0 END FROM (VALUES (1), (2)) v(i);
SELECT coalesce(generate_series(1, 3), 0) FROM (VALUES (1), (2)) v(i);
SELECT array_length(generate_series(1, 3), 1);
SELECT abs(generate_series(-1, 1)), generate_series(1, 3) + 1, generate_series(1, 2) || 'x';
SELECT i, generate_series(1, i) FROM (VALUES (2), (0)) v(i);
SELECT DISTINCT generate_series(1, 3) % 2 ORDER BY 1;
SELECT generate_series(1, 3), generate_series(1, 2);
SELECT generate_series(1, 3) AS g, count(*) FROM (VALUES (1), (2)) v(i) GROUP BY g ORDER BY 1;
SELECT count(*) FROM (VALUES (1), (2)) v(i) GROUP BY generate_series(1, 2);
SELECT string_agg(unnest(array['a', 'b']), ',');
SELECT max(i) FROM (VALUES (1), (2)) v(i) ORDER BY generate_series(1, 2);
VALUES (generate_series(1, 2));
SELECT (SELECT max(g) FROM generate_series(1, i) AS s(g)), generate_series(1, i) * 2 FROM (VALUES (2)) v(i);
SELECT (generate_series(1, 2)::text || 'a') AS t, upper(string_to_table('a,b', ',')), unnest(array[1, 2]) + 1;
SELECT date '2024-01-01' + generate_series(0, 2);

-- WITH queries are computed once.
WITH q(x) AS (SELECT random() FROM generate_series(1, 5)) SELECT count(*) FROM (SELECT * FROM q UNION SELECT * FROM q) s;
WITH q(x) AS (SELECT random()) SELECT count(*) FROM q a JOIN q b ON a.x = b.x;
WITH q(x) AS (SELECT random() FROM generate_series(1, 5)) SELECT count(DISTINCT x) FROM q;
WITH q AS (SELECT gen_random_uuid() AS u) SELECT (SELECT u FROM q) = (SELECT u FROM q);
