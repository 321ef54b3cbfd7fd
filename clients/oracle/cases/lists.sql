SELECT id FROM facts WHERE i IN (j, 2) AND i IN (id, 1);
SELECT id FROM facts WHERE i IN (j, 1, 2, 3, 4) AND i IN (j, 2, 5, 6, 7);
SELECT id FROM facts WHERE i IN (j, 1, 2, 3, 4) AND i NOT IN (j, 2, 5, 6, 7);
SELECT id FROM facts WHERE i NOT IN (j, 1, 2, 3, 4) OR i NOT IN (id, 2, 5, 6, 7);
SELECT id FROM facts WHERE i NOT IN (j, 1, 2, 3, 4) AND i NOT IN (id, 2, 5, 6, 7);
SELECT id FROM facts WHERE i IN (1, 2, 3, 4, 5) AND i NOT IN (2, NULL, 8, 9, 10);
SELECT id FROM facts WHERE i NOT IN (1, 2, NULL) OR i NOT IN (2, 3, 4, 5);
SELECT id, i IN (1, 2, 3, NULL) AND i IN (4, 5, 6, NULL), i NOT IN (1, 2, 3, NULL) OR i NOT IN (4, 5, 6, NULL) FROM facts;
SELECT id FROM facts WHERE d IN (0.0, 1.5, 8, 9) AND d IN ('-0.0', 1.5, 3, 4);
SELECT id FROM (SELECT id, s FROM facts WHERE s IN ('a', upper('b'), lower('AB'), 'x y')) AS f WHERE s IN (lower('A'), 'ab', 'q', 'z');
SELECT id, (i IN (1)) AND (i IN (2)), (i NOT IN (1)) OR (i NOT IN (2)), (i IN (1, 2)) AND (i NOT IN (1, 2)) FROM facts;
SELECT id, NOT ((i IN (1, 2, 3, 4, 5)) AND (i IN (6, 7, 8, 9))), (i IN (1, 2, 3, 4, 5) AND i IN (6, 7, 8, 9)) IS NULL FROM facts;
SELECT id FROM facts WHERE NOT (i IN (1) AND i IN (2));
SELECT id FROM facts WHERE i NOT IN (1, 2, 3, 4) OR i NOT IN (5, 6, 7, 8);
SELECT id FROM facts WHERE i IN (1, 2, 3, 4, 5) AND i IN (4, 5, 6, 7, 8) AND (i IN (1, 2) AND i IN (3, 4)) IS NOT TRUE;
SELECT q, bool_and((i IN (1)) AND (i IN (2))), count(*) FILTER (WHERE NOT (i IN (1) AND i IN (2))) FROM facts GROUP BY q;
SELECT id FROM facts ORDER BY (i IN (1) AND i IN (2)) NULLS FIRST, id;
SELECT id, (q IN (1.5, 7.0)) AND (q IN (0.5, 10.00)), (p IN (1.5)) AND (p IN (2)), (l IN (1)) AND (l IN (3000000000)) FROM facts
