-- Columns of VALUES, names of types, series: what is no literal.
SELECT x, pg_typeof(x)::text FROM (VALUES (1e-300::double precision), (1.5), ('Infinity'), (NULL)) v(x);
SELECT x, pg_typeof(x)::text FROM (VALUES (0.1::real), (0.2), (3), ('7')) v(x);
SELECT x FROM (VALUES (1), ('a')) v(x);
SELECT x FROM (VALUES (1), ('a'::text)) v(x);
SELECT x FROM (VALUES (true), (1)) v(x);
SELECT x FROM (VALUES (1, 2), (3)) v(x);
SELECT x FROM (VALUES (1.0 / 3), (2)) v(x);
SELECT x FROM (VALUES (DATE '2024-03-01' - DATE '2024-02-01'), (5)) v(x);
SELECT x FROM (VALUES ('abc'::varchar(2)), ('xyz')) v(x);
SELECT pg_typeof(NULL)::text, pg_typeof('a')::text, pg_typeof('a'::text)::text;
SELECT pg_typeof(avg(p))::text, pg_typeof(count(*))::text, pg_typeof(sum(d))::text, pg_typeof(max(seen))::text FROM facts;
SELECT pg_typeof(ARRAY[i])::text, pg_typeof(ARRAY[s, u])::text FROM facts WHERE id = 1;
SELECT pg_typeof(1 / 0)::text;
SELECT n FROM generate_series(9223372036854775806::bigint, 9223372036854775807) AS s(n);
SELECT n FROM generate_series(1::int, 3, 0) AS s(n);
SELECT n FROM generate_series(1, (SELECT max(i) FROM facts)) AS s(n);
SELECT n FROM generate_series(TIMESTAMP '2024-01-31', '2024-05-01', '1 month') AS s(n)
