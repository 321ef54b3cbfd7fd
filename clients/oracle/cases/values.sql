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

-- Rows, arrays and VALUES as values; literals that go on in the next line, and those of other bases.
SELECT row(1, 2), (1, 'a b'), row(NULL, '', 'q"\(,'), row(row(1, 2), array[1, 2]), row(true, DATE '2020-01-01', 1.5);
SELECT x FROM (VALUES (row(1, 'a')), (NULL)) t(x);
SELECT (VALUES (1)), (VALUES ('x')) || 'y';
SELECT (VALUES (1, 2));
SELECT array[interval '1 mon', '-2 days'], array[DATE '2020-01-01', '2020-01-02'], array['2020-01-01', TIMESTAMP '2020-01-02'], array[NULL, true, 'f'], array['10:00', TIME '11:00'];
SELECT array[DATE '2020-01-01', 'soon'];
SELECT (facts).id FROM facts ORDER BY 1;
SELECT 'a' 'b';
SELECT 1 'x';
SELECT id 'x' FROM facts UNION SELECT 1;
SELECT 'a'
  'b' AS x, 'c' -- and more
'd';

-- Samples.
SELECT count(*) FROM facts TABLESAMPLE BERNOULLI (0);
SELECT count(*) FROM facts x TABLESAMPLE SYSTEM (100) WHERE x.id > 0;
SELECT count(*) FROM facts TABLESAMPLE SYSTEM (101);
SELECT count(*) FROM facts TABLESAMPLE SYSTEM (10) REPEATABLE (3);
