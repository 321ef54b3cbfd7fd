\set account random(1, 100)
\set first random(0, 20)
SELECT account, day, sum(imps), sum(clicks) FROM bench_report WHERE account = :account AND day BETWEEN :first AND :first + 6 GROUP BY account, day ORDER BY day;
