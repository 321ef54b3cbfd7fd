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
SELECT count(*) FROM facts WHERE extract(year FROM day) = 2024 AND extract(month FROM day) IN (1, 2, 3);
SELECT DISTINCT ON (s) s, l, id FROM facts ORDER BY s, d, CASE WHEN false THEN p ELSE d END NULLS FIRST, id;
SELECT array_agg(id ORDER BY i, i DESC, id, id), string_agg(s, ',' ORDER BY s, s, id) FROM facts;
SELECT s, array_agg(id ORDER BY s, i, i + 0, CASE WHEN true THEN i END, id, id DESC) FROM facts GROUP BY s;
SELECT id, array_agg(id) OVER (PARTITION BY s, s ORDER BY i, i DESC, i + 0, id, id) FROM facts;
SELECT id, rank() OVER (ORDER BY ROW(i, s) DESC NULLS LAST), first_value(id) OVER (ORDER BY j, ROW(s, id) DESC NULLS LAST) FROM facts;
SELECT id FROM facts ORDER BY ROW(i, s) DESC NULLS LAST, (j, b), id DESC;
SELECT array_agg(id ORDER BY ROW(i, (s, j)) NULLS FIRST, id), array_agg(id ORDER BY (d, id) DESC) FROM facts;
SELECT DISTINCT ON (b) b, id FROM facts ORDER BY b, ROW(i, s) DESC, (j, id) NULLS FIRST;
SELECT array_agg(id ORDER BY d, id), string_agg(s, ',' ORDER BY d DESC, id), array_agg(d ORDER BY -d DESC, id) FROM facts;
SELECT s, array_agg(id ORDER BY r * 0, id DESC), array_agg(id ORDER BY nullif(d * 0, 1), id) FROM facts GROUP BY s;
SELECT array_agg(DISTINCT d ORDER BY d), array_agg(DISTINCT r ORDER BY r DESC NULLS LAST), string_agg(DISTINCT s, ',' ORDER BY s) FROM facts
;
-- What a CASE is in the end decides how it is rounded when it is assigned.
DROP TABLE IF EXISTS assigned;
CREATE TABLE assigned (k bigint, l bigint, n int, d double precision);
INSERT INTO assigned VALUES (1, 1, 1, 1.5), (2, 9007199254740993, 2, 2.5), (3, CASE WHEN 1 = 2 THEN 1 ELSE 2.5 END, CASE WHEN 1 = 2 THEN 1 ELSE 3.5 END, 0);
INSERT INTO assigned SELECT k + 10, CASE WHEN d < 0 THEN 1 ELSE d END, CASE WHEN d < 0 THEN k::int ELSE d + 0.25 END FROM assigned UNION ALL SELECT 20, 8, 9;
INSERT INTO assigned SELECT k + 30, CASE WHEN d < 0 THEN k ELSE n * 2.25 END, CASE WHEN d < 0 THEN n ELSE n * 2.25 END FROM assigned WHERE k < 10;
UPDATE assigned SET l = CASE WHEN k = 7 THEN 1 ELSE d END, n = CASE WHEN k = 7 THEN n ELSE n * 1.25 END WHERE k = 1;
SELECT * FROM assigned ORDER BY k, l;
DROP TABLE assigned
