SELECT * FROM ROWS FROM (generate_series(1, 3));
SELECT * FROM ROWS FROM (generate_series(1, 3)) AS n;
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b']));
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b'])) AS x (a, b);
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b'])) WITH ORDINALITY;
SELECT x.a, x.unnest, x.n FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b'])) WITH ORDINALITY AS x (a, unnest, n) WHERE n > 1;
SELECT * FROM rows from (unnest(ARRAY[1, 2], ARRAY['x', 'y', 'z']), string_to_table('p,q', ',')) AS t (a, b, c);
SELECT i, x.* FROM few, ROWS FROM (generate_series(1, i), unnest(ARRAY['a', 'b'])) AS x (n, u) WHERE i < 3 ORDER BY i, n, u;
SELECT count(*) FROM ROWS FROM (generate_series(1, 3)) AS a, ROWS FROM (generate_series(1, 2)) AS b;
