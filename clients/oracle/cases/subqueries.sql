-- Unqualified names mean the inner table's columns.
SELECT count(*) FROM facts WHERE i = ANY (SELECT i FROM others WHERE i > 2);
SELECT count(*) FROM facts WHERE i <> ALL (SELECT i FROM others WHERE i > 2);
SELECT count(*) FROM facts WHERE i >= ALL (SELECT i FROM others WHERE i IS NOT NULL);
SELECT i IN (SELECT i FROM others) IS NULL FROM facts;
