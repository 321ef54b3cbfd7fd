SELECT id, CAST(p AS int) = 3, CAST(p AS bigint) IN (1, 2, 3), CAST(p AS numeric(10,0)) >= 2, CAST(q AS int) FROM facts;
SELECT id FROM facts WHERE CAST(p AS int) BETWEEN 1 AND 3;
SELECT id FROM facts WHERE CAST(p AS int) = 2;
SELECT id FROM facts WHERE CAST(q AS numeric(10,1)) IN (0.5, 1.5, 2.5);
SELECT id FROM facts WHERE p::int <> 3 AND p::int < 10;
SELECT count(*) FROM facts WHERE CAST(l + 9000000000 AS int) > 1;
SELECT count(*) FROM facts WHERE CAST(i AS smallint) > 1;
SELECT (CAST(7.4 + i AS int), s) > (8, 'a') FROM facts;
SELECT id, day::timestamp = TIMESTAMP '2024-01-01 12:00:00', at::date = DATE '2024-01-01', at::date >= '2024-01-02' FROM facts;
SELECT DISTINCT ON (j) j, 1, id FROM facts ORDER BY j, 0::double precision / nullif(d, 0), id;
SELECT DISTINCT ON (b) b, id FROM facts ORDER BY b, 0::real / nullif(r, 0) DESC NULLS LAST, id;
SELECT DISTINCT ON (b) b, s LIKE 'a%', id FROM facts ORDER BY b, 2, 3;
SELECT DISTINCT ON (b) b, true, id FROM facts ORDER BY 1, 2 ASC, id
;
SELECT DISTINCT ON (s) s, at, id FROM facts ORDER BY s, (id | id) DESC, id;
SELECT i::text, i, count(*) FROM facts GROUP BY i::text, i ORDER BY i;
SELECT CAST(i AS text), i::numeric, i, count(*) FROM facts GROUP BY CAST(i AS text), i::numeric, i ORDER BY i;
SELECT sum(i), sum(i::numeric), avg(i), avg(i::double precision), count(DISTINCT i::text), count(DISTINCT i) FROM facts;
SELECT id, sum(i) OVER (), sum(i::numeric) OVER (), max(i::text) OVER (PARTITION BY s::text), max(i) OVER (PARTITION BY s) FROM facts;
SELECT at::date, at FROM facts GROUP BY at::date, at ORDER BY at;
SELECT a::int + 1, a FROM (SELECT i::text AS a FROM facts) AS x GROUP BY a, a::int ORDER BY a::int;
SELECT extract(year FROM day), extract(month FROM day) / 2, extract(second FROM at), extract(hour FROM at) + 1, extract(epoch FROM at) FROM facts;
SELECT date_part('year', day), date_part('month', day) / 2, date_part('second', at), date_part('dow', day), DATE_PART('hour', at) FROM facts;
SELECT extract(quarter FROM day), count(*) FROM facts GROUP BY 1 ORDER BY 1;
SELECT date_part, count FROM (SELECT date_part('month', day), count(*) FROM facts GROUP BY date_part('month', day)) AS x ORDER BY 1;
SELECT count(*) FROM facts WHERE extract(year FROM day) = 2024 AND extract(month FROM day) IN (1, 2, 3)
