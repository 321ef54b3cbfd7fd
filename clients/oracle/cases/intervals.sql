-- Digits of the seconds.
SELECT interval(0) '1.6 seconds', interval(2) '1.666 seconds', interval(0) '-1.5 seconds', interval(6) '1.6 s';
SELECT '1.666 s'::interval(1), CAST('-1 day 1.05 s' AS interval(1)), '0.5 s'::interval(0), '-0.5 s'::interval(0), '1.4999999'::interval(0);
SELECT interval(0) E'2.5 s' + interval '1 day', (interval(1) '0.25 s')::text;
SELECT CAST(at - TIMESTAMP '2024-01-01 00:00:00.123456' AS interval(2)) FROM facts ORDER BY id;

-- Numbers of rows and of groups.
SELECT id, nth_value(id, 2) OVER (ORDER BY id) FROM others ORDER BY id;
SELECT nth_value(id, 0) OVER (ORDER BY id) FROM others;
SELECT nth_value(id, -1) OVER (ORDER BY id) FROM others;
SELECT ntile(0) OVER (ORDER BY id) FROM others;

-- Differences of moments as intervals.
SELECT (TIMESTAMP '2024-07-22 00:01:01' - TIMESTAMP '2024-01-01')::interval, (at - TIMESTAMP '2024-05-01')::interval FROM facts ORDER BY id;
SELECT extract(day FROM (at - TIMESTAMP '2024-01-01')::interval), date_part('hour', at - TIMESTAMP '2024-01-01') FROM facts ORDER BY id;
SELECT at - TIMESTAMP '2024-01-01' AS x FROM facts UNION ALL SELECT INTERVAL '30 hours' ORDER BY 1;
SELECT coalesce(at - TIMESTAMP '2024-01-01', INTERVAL '0'), CASE WHEN b THEN INTERVAL '1 mon' ELSE at - TIMESTAMP '2024-01-01' END FROM facts ORDER BY id;
SELECT greatest(at - TIMESTAMP '2024-01-01', INTERVAL '100 days'), (at - TIMESTAMP '2024-01-01') * 2, (at - TIMESTAMP '2024-01-01') / 2 FROM facts ORDER BY id;
SELECT (at - TIMESTAMP '2024-01-01') + INTERVAL '1 hour', -(at - TIMESTAMP '2024-01-01'), (at - TIMESTAMP '2024-01-01') - (at - TIMESTAMP '2024-03-01 12:00') FROM facts ORDER BY id;
SELECT sum(at - TIMESTAMP '2024-01-01'), avg(at - TIMESTAMP '2024-01-01'), max(at - TIMESTAMP '2024-01-01') FROM facts;
SELECT array_agg(at - TIMESTAMP '2024-01-01' ORDER BY id) FROM others;
SELECT to_char(at - TIMESTAMP '2024-01-01', 'DD HH24:MI:SS'), justify_interval(at - TIMESTAMP '2024-01-01'), justify_hours(at - TIMESTAMP '2024-01-01') FROM facts ORDER BY id;
SELECT seen - TIMESTAMPTZ '2024-01-01 00:00:00+00', (seen - TIMESTAMPTZ '2024-01-01 00:00:00+00')::interval(0) FROM facts ORDER BY id;
SELECT * FROM (VALUES (TIMESTAMP '2024-07-22' - TIMESTAMP '2024-01-01'), (INTERVAL '5 hours')) AS v(x);
SELECT ARRAY[TIMESTAMP '2024-07-22' - TIMESTAMP '2024-01-01', INTERVAL '5 hours'];
WITH w AS (SELECT at - TIMESTAMP '2024-01-01' AS x, id FROM others) SELECT x, x::text, x = INTERVAL '1 day' FROM w ORDER BY id;
CREATE TABLE kept_intervals AS SELECT id, at - TIMESTAMP '2024-01-01' AS x FROM others;
SELECT date_trunc('day', at - TIMESTAMP '2024-01-01'), extract(epoch FROM at - TIMESTAMP '2024-01-01') FROM facts ORDER BY id;
SELECT lag(at - TIMESTAMP '2024-01-01', 1, INTERVAL '1 day') OVER (ORDER BY id) FROM others ORDER BY id;
SELECT at + (at - TIMESTAMP '2024-01-01'), day + (at - TIMESTAMP '2024-01-01'), TIME '10:00' + (at - TIMESTAMP '2024-01-01') FROM facts ORDER BY id;
SELECT nullif(at - TIMESTAMP '2024-01-01', INTERVAL '1 day'), (at - TIMESTAMP '2024-01-01') IN (INTERVAL '1 day', INTERVAL '2 days') FROM facts ORDER BY id;
