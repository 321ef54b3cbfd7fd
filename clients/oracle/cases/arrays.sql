-- Arrays of queries, and parts of arrays.
SELECT ARRAY(SELECT id FROM facts ORDER BY id DESC);
SELECT ARRAY(SELECT s FROM nothing);
SELECT ARRAY(SELECT i FROM few ORDER BY i NULLS FIRST);
SELECT id, ARRAY(SELECT o.i FROM others o WHERE o.id = facts.id ORDER BY o.i, o.k) FROM facts ORDER BY id;
SELECT id, ARRAY(SELECT o.s || 'x' FROM others o WHERE o.id = facts.id AND o.i > 1000) FROM facts ORDER BY id;
SELECT id, cardinality(ARRAY(SELECT o.i FROM others o WHERE o.day = facts.day)) FROM facts ORDER BY id;
SELECT ARRAY(VALUES (3), (1), (2));
SELECT ARRAY(SELECT DISTINCT i FROM few ORDER BY 1);
SELECT ARRAY(SELECT DISTINCT i FROM few ORDER BY i DESC NULLS LAST);
SELECT ARRAY(SELECT i FROM few GROUP BY i ORDER BY count(*) DESC, i LIMIT 3);
SELECT ARRAY(SELECT id FROM facts ORDER BY day, id LIMIT 4 OFFSET 1);
SELECT ARRAY(SELECT id AS x FROM facts ORDER BY x DESC LIMIT 2);
SELECT ARRAY(SELECT max(id) FROM facts);
SELECT ARRAY(SELECT i FROM few UNION SELECT id FROM facts ORDER BY 1);
SELECT ARRAY(SELECT i FROM few UNION ALL SELECT id FROM facts ORDER BY i DESC NULLS LAST LIMIT 5);
SELECT ARRAY(WITH w AS (SELECT id FROM facts) SELECT id FROM w ORDER BY id LIMIT 3);
SELECT ARRAY(SELECT unnest(ARRAY[3, 1, 2]));
SELECT ARRAY(SELECT row_number() OVER (ORDER BY id DESC)::int FROM facts ORDER BY 1 LIMIT 3);
SELECT id FROM facts WHERE i = ANY (ARRAY(SELECT i FROM few)) ORDER BY id;
SELECT id FROM facts WHERE 3 = ALL (ARRAY(SELECT i FROM nothing)) ORDER BY id;
SELECT coalesce(array_length(ARRAY(SELECT i FROM nothing), 1), -1), ARRAY(SELECT i FROM nothing) = '{}';
SELECT (ARRAY(SELECT id FROM facts ORDER BY id))[2:3], (ARRAY(SELECT id FROM facts ORDER BY id))[1];
SELECT ARRAY(SELECT id, i FROM facts);
SELECT ARRAY(SELECT * FROM few WHERE false);
SELECT ARRAY(SELECT nothing_like_it FROM facts);
SELECT count(*) FROM facts GROUP BY ARRAY(SELECT i FROM nothing);
SELECT (ARRAY[1, 2, 3])[2:3], (ARRAY[1, 2, 3])[:2], (ARRAY[1, 2, 3])[2:], (ARRAY[1, 2, 3])[:];
SELECT (ARRAY[1, 2, 3])[0:1], (ARRAY[1, 2, 3])[-5:-1], (ARRAY[1, 2, 3])[3:2], (ARRAY[1, 2, 3])[4:9];
SELECT (ARRAY['a', NULL, 'c'])[2:], ('{1,2,3}'::bigint[])[2:2], (NULL::int[])[1:2], (ARRAY[1, 2])[NULL:1], (ARRAY[1, 2])[1:NULL];
SELECT id, (array_agg(i) OVER (ORDER BY id))[1:2] FROM facts WHERE id < 5 ORDER BY id;
SELECT b, (array_agg(id ORDER BY id DESC))[1:2], (array_agg(id ORDER BY id))[:1] FROM facts GROUP BY b ORDER BY b;
SELECT id, (ARRAY[id, i, 5])[id:id + 1] FROM facts ORDER BY id;
SELECT (5)[1:2];
-- Subqueries about the row in ORDER BY.
SELECT id FROM facts ORDER BY (SELECT max(o.i) FROM others o WHERE o.id = facts.id) DESC NULLS LAST, id;
SELECT s FROM facts ORDER BY (SELECT min(o.k) FROM others o WHERE o.id = facts.id) NULLS FIRST, id;
SELECT s, i FROM facts ORDER BY EXISTS (SELECT 1 FROM few WHERE few.i = facts.i) DESC, id LIMIT 4;
SELECT id FROM facts ORDER BY id IN (SELECT i FROM few WHERE few.p > facts.p), id;
SELECT id FROM facts ORDER BY (SELECT count(*) FROM others o WHERE o.day < facts.day), id OFFSET 1;
SELECT b, count(*) FROM facts GROUP BY b ORDER BY (SELECT count(*) FROM few WHERE few.i = 1), b;
SELECT i, max(id) FROM facts GROUP BY i ORDER BY (SELECT count(*) FROM few WHERE few.i = facts.i) DESC, i;
SELECT * FROM (SELECT id FROM facts ORDER BY (SELECT max(o.i) FROM others o WHERE o.id = facts.id) DESC NULLS LAST, id LIMIT 3) x ORDER BY 1
;
SELECT ARRAY[1, 2] = '{1,2}', ARRAY['a'] <> '{b}', '{1}' = ARRAY[1], ARRAY[1, 2] = '{1,x}';
SELECT ARRAY[1, 2] = '{1,2}', ARRAY['a'] <> '{b}', '{1}' = ARRAY[1], ARRAY[1.5] = '{1.50}';
SELECT b FROM facts GROUP BY b HAVING array_agg(id ORDER BY id) <> '{}' ORDER BY b
