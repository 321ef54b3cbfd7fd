"""Rules of queries: relations, joins, groups, set operations, WITH."""

RULES = {
    "rel": """
        facts
        facts
        facts
        facts AS facts
        (SELECT * FROM facts WHERE {b}) facts
        (SELECT * FROM facts ORDER BY {e} LIMIT {limit}) facts
        (SELECT * FROM facts UNION ALL SELECT * FROM facts) facts
        (SELECT * FROM facts {setop} SELECT * FROM facts WHERE {b}) facts
        facts {join} few ON fk = {i}
        facts {join} few ON fk = k AND {b}
        facts {join} few ON {b}
        facts LEFT JOIN (SELECT DISTINCT ft FROM few) z ON z.ft = t
        facts CROSS JOIN few
        facts, generate_series({end}, 5) AS g (g)
        facts CROSS JOIN unnest({a1}) AS z (z)
        facts, LATERAL (SELECT fn * {n} AS fx FROM few WHERE fk = k) z
        facts NATURAL JOIN (SELECT k FROM facts) z
        facts JOIN (SELECT k, count(*) AS c FROM facts GROUP BY k) z USING (k)
        facts WHERE k IN (SELECT fk FROM few) AND {b}
    """,
    "a1": "ARRAY[1,2] ARRAY[NULL] '{1}'::bigint[] facts.a NULL",
    "join": """
        JOIN
        LEFT JOIN
        RIGHT JOIN
        FULL JOIN
        INNER JOIN
    """,
    "setop": """
        UNION
        UNION ALL
        EXCEPT
        INTERSECT
        EXCEPT ALL
        INTERSECT ALL
    """,
    "limit": "0 1 3 10 2 5 NULL -1 9223372036854775807 {i}",
    "list": """
        *
        {e}
        {e}, {e}
        {n} AS x, {t} AS y
        {e} AS a, {e}, {e}
        {b}, {d}, {ts}, {a}
        k, {agg} OVER ({over}), {rank} OVER ({over})
        {e} AS "select", *
        unnest({a})
        unnest({a}), unnest({ta})
        DISTINCT {e}
    """,
    "tail": """
        ORDER BY 1
        ORDER BY 1
        ORDER BY 1 LIMIT {limit}
        ORDER BY 1 DESC LIMIT 3
        ORDER BY {e}
        ORDER BY {e} DESC NULLS FIRST, 1
        ORDER BY k LIMIT {limit}
        LIMIT {limit}
        LIMIT {limit} OFFSET {limit}
        ORDER BY k FETCH FIRST 3 ROWS ONLY
    """,
    "core": """
        SELECT 1 AS x
        SELECT k, t FROM facts
        SELECT * FROM few
        SELECT {lit}, {lit}
        SELECT {list} FROM facts
        SELECT {list} FROM {rel}
        SELECT {list} FROM {rel}
        SELECT {list} FROM facts WHERE {b}
        SELECT {list} FROM facts WHERE {b}
        SELECT {aggs} FROM {rel}
        SELECT {e}, {aggs} FROM {rel} GROUP BY 1
        SELECT {e}, {e}, {aggs} FROM {rel} GROUP BY 1, 2
        SELECT k % 3, t, {aggs} FROM facts GROUP BY 1, 2 HAVING {agg} > {n}
        SELECT t, b, {aggs} FROM {rel} GROUP BY {sets}
        SELECT t, b, grouping(t), grouping(t, b), {agg} FROM facts GROUP BY {sets}
        SELECT DISTINCT {e}, {e} FROM {rel}
        SELECT DISTINCT ON ({e}) {e} FROM {rel}
        SELECT {rank} OVER w, {agg} OVER w FROM facts WINDOW w AS ({over})
        VALUES ({lit}, {lit}), ({lit}, {lit})
        VALUES (1, {lit}), ({small0}, NULL), (2, {lit})
        SELECT account, sum({report}), count(*) FROM visits WHERE account = {small} AND day BETWEEN 20150101 AND {day} GROUP BY account
        SELECT account, day, min(imps), avg(imps) FROM visits WHERE account IN ({small}, 7) GROUP BY account, day ORDER BY day LIMIT 3
        SELECT day, imps FROM visits WHERE account = {i} AND imps > {n} LIMIT 5
        SELECT count(*) FROM generate_series({end}, {end}, {end})
        SELECT * FROM generate_series(DATE '2024-02-26', DATE '2024-03-02', {step}) AS s (s)
    """,
    "rx": "x||'a' upper(x) x n::text repeat(x,2) NULL",
    "report": "imps day account imps",
    # Series are short; those that are not are among what is heavy.
    "end": """
        0
        1
        3
        -1
        5
        NULL
        1::int
        (SELECT 2)
        (SELECT max(fk) FROM few)
    """,
    "step": """
        INTERVAL '1 day'
        INTERVAL '0'
        INTERVAL '36 hours'
        INTERVAL '-1 month'
        NULL
    """,
    "day": "20150120 20150103 20150128",
    "sets": """
        t, b
        ROLLUP (t, b)
        CUBE (t, b)
        GROUPING SETS ((t), (b), ())
        GROUPING SETS ((t, b), (t))
        ALL
    """,
    "pair": """
        SELECT t, n FROM facts
        SELECT {t}, {n} FROM facts
        SELECT {t}, {n} FROM facts WHERE {b}
        SELECT ft, fn FROM few
        SELECT t, {agg1} FROM facts GROUP BY t
        VALUES ('a', 1), (NULL, 2.5)
        SELECT 'x', {lit}
    """,
    "query": """
        {core}
        {core}
        {core}
        {core}
        {core}
        {core}
        {core} {tail}
        {core} {tail}
        {core} {tail}
        {pair} {setop} {pair}
        {pair} {setop} {pair} {tail}
        ({pair} {tail}) {setop} ({pair} {setop} {pair})
        {pair} {setop} {core}
        SELECT {lit} {setop} SELECT {lit}
        SELECT {e}, {e} FROM facts {setop} SELECT {e}, {e} FROM few, facts {tail}
        SELECT * FROM ({query}) q {tail}
        SELECT count(*) FROM ({query}) q
        SELECT q.*, {e} FROM facts, LATERAL ({core}) q LIMIT 3
        SELECT {e} FROM facts WHERE {i} IN (SELECT {i} FROM few)
        WITH c AS ({query}) SELECT * FROM c
        WITH c AS ({query}), e AS (SELECT * FROM c {setop} SELECT * FROM c) SELECT count(*) FROM e, c
        WITH c (x) AS (SELECT {e} FROM facts) SELECT x, count(*) FROM c GROUP BY x
        WITH RECURSIVE r (n) AS (SELECT {small0} UNION ALL SELECT n + 1 FROM r WHERE n < 9 AND n > -9) SELECT * FROM r LIMIT 20
        WITH RECURSIVE r AS (SELECT 1 AS n, 'x' AS x UNION SELECT n + 1, {rx} FROM r WHERE n < 4) SELECT n, length(x) FROM r
        WITH RECURSIVE r (q, m) AS (SELECT 1, {lit} UNION ALL SELECT q + 1, {e} FROM r, facts WHERE q < 2) SELECT count(*) FROM r
    """,
}  # fmt: skip
