"""Statements that are deep, and such that are wide."""

from conftest import number

DEPTH = number("DEPTH", 100)
WIDTH = 10 * DEPTH


def sized(rng, most):
    """A number from 2 to `most`, as likely between 2 and 20 as between 200 and 2000."""
    return int(2 * (most / 2) ** rng.random())


def deep(rng):
    """One thing within itself, many times."""
    n = sized(rng, DEPTH)
    return rng.choice(DEEP)(n)


def wide(rng):
    """One thing beside itself, many times."""
    n = sized(rng, WIDTH)
    return rng.choice(WIDE)(n)


def doubled(n):
    """Queries that each read the one before twice."""
    count = n // 8 + 1
    each = (f", a{i} AS (SELECT * FROM a{i - 1} UNION ALL SELECT * FROM a{i - 1})" for i in range(1, count + 1))
    return f"WITH a0 AS (SELECT 1 AS x){''.join(each)} SELECT count(*) FROM a{count}"


DEEP = [
    lambda n: "SELECT " + "(" * n + "1" + ")" * n,
    lambda n: "SELECT " + "ARRAY[" * n + "1" + "]" * n,
    lambda n: "SELECT " + "- " * n + "1",
    lambda n: "SELECT " + "NOT " * n + "true",
    lambda n: "SELECT 1" + "::bigint::text" * n,
    lambda n: "SELECT " + "abs(" * n + "1" + ")" * n,
    lambda n: "SELECT " + "CASE WHEN true THEN " * n + "1" + " ELSE 0 END" * n,
    lambda n: "SELECT " + "CASE i WHEN 1 THEN s WHEN " * n + "1 THEN 2 END" + " THEN 3 END" * (n - 1) + " FROM facts",
    lambda n: "SELECT * FROM (" * n + "SELECT 1 AS a" + ") t" * n,
    lambda n: "SELECT " + "(SELECT " * n + "1" + ")" * n,
    lambda n: "EXPLAIN " * n + "SELECT 1",
    lambda n: "SELECT " + "coalesce(" * n + "imps" + ", 1)" * n + " FROM visits LIMIT 1",
    lambda n: "SELECT " + "(" * n + "imps" + " BETWEEN 1 AND 2)" * n + " FROM visits LIMIT 1",
    lambda n: "SELECT true" + " IS NULL" * n,
    lambda n: "SELECT 1 WHERE " + "EXISTS (SELECT 1 WHERE " * n + "true" + ")" * n,
    lambda n: "SELECT 1 WHERE " + "1 IN (SELECT fk FROM few WHERE " * n + "true" + ")" * n,
    lambda n: "CREATE TABLE deep (a bigint" + "[]" * n + ") AS nothing",
    lambda n: "CREATE TABLE deep (a " + "struct<b " * n + "int" + ">" * n + ", x nothing)",
    lambda n: "SELECT CAST(NULL AS bigint" + "[]" * n + ")",
    lambda n: "SELECT a" + "[1]" * n + " FROM facts",
    lambda n: "SELECT " + "named_struct('a', " * n + "1" + ")" * n,
    lambda n: "SELECT '" + "{" * n + "}" * n + "'::bigint[]",
    lambda n: "SELECT '" + '{"a":' * n + "1" + "}" * n + "'::json",
    lambda n: "SELECT 'a' ~ '" + "(" * n + "a" + ")*" * n + "'",
    lambda n: "SELECT " + "lower(upper(" * n + "t" + "))" * n + " FROM facts",
    lambda n: "SELECT d" + " + INTERVAL '1 day'" * n + " FROM facts",
    lambda n: "SELECT sum(" * n + "i" + ")" * n + " FROM facts",
    lambda n: "(" * n + "SELECT 1" + " UNION SELECT 1)" * n,
    lambda n: "WITH a AS (" * n + "SELECT 1" + ") SELECT * FROM a" * n,
    lambda n: "WITH RECURSIVE a AS (" * n + "SELECT 1" + ") SELECT * FROM a" * n,
    lambda n: "SELECT * FROM few f0" + "".join(f" JOIN LATERAL (SELECT * FROM few WHERE fk = f0.fk) f{i} ON true" for i in range(1, n // 20 + 2)),
    lambda n: "BEGIN; " + "".join(f"SAVEPOINT s{i}; " for i in range(n)) + "ROLLBACK",
    lambda n: "/* " * n + "SELECT 1" + " */" * n,
    lambda n: "SELECT " + "(" * n,
    lambda n: "SELECT " + "ARRAY[" * n,
    lambda n: "SELECT " + "[" * n,
    lambda n: "SELECT " + "CASE " * n,
    doubled,
]  # fmt: skip

WIDE = [
    lambda n: "SELECT " + " + ".join(["1"] * n),
    lambda n: "SELECT count(*) FROM visits WHERE " + " OR ".join(f"account = {i}" for i in range(n)),
    lambda n: "SELECT count(*) FROM visits WHERE " + " AND ".join(f"imps <> {i}" for i in range(n)),
    lambda n: f"SELECT count(*) FROM visits WHERE account IN ({', '.join(map(str, range(n)))})",
    lambda n: "SELECT count(*) FROM facts WHERE t IN (" + ", ".join(f"'{i}'" for i in range(n)) + ")",
    lambda n: " UNION ALL ".join(["SELECT 1"] * (n // 10 + 2)),
    lambda n: " INTERSECT ".join(["SELECT k FROM facts"] * (n // 40 + 2)),
    lambda n: "SELECT " + ", ".join(f"imps + {i}" for i in range(n)) + " FROM visits LIMIT 1",
    lambda n: "SELECT " + ", ".join(f"sum(i % {i + 1})" for i in range(n // 20 + 1)) + " FROM facts",
    lambda n: "SELECT " + ", ".join(f"sum(s) OVER (ORDER BY k % {i + 1})" for i in range(n // 50 + 1)) + " FROM facts",
    lambda n: "SELECT k FROM facts ORDER BY " + ", ".join(f"i % {i + 1}" for i in range(n // 10 + 1)),
    lambda n: "SELECT count(*) FROM facts GROUP BY " + ", ".join(f"k % {i + 1}" for i in range(n // 10 + 1)),
    lambda n: "SELECT count(*) FROM facts GROUP BY CUBE (" + ", ".join(f"k % {i + 1}" for i in range(min(n // 10 + 1, 64))) + ")",
    lambda n: "VALUES " + ", ".join(f"({i}, 'x')" for i in range(n)),
    lambda n: "SELECT " + " || ".join(["'x'"] * n),
    lambda n: "SELECT " + "*".join(["7"] * n),
    lambda n: "SELECT " + "#".join(["7"] * n),
    lambda n: "SELECT " + "%".join(["i"] * n) + " FROM facts",
    lambda n: "SELECT count(imps" + " # 1" * n + ") FROM visits",
    lambda n: "SELECT coalesce(" + ", ".join(["NULL"] * n) + ")",
    lambda n: "SELECT greatest(" + ", ".join(map(str, range(n))) + ")",
    lambda n: "SELECT ARRAY[" + ", ".join(map(str, range(n))) + "]",
    lambda n: "SELECT CASE k" + "".join(f" WHEN {i} THEN 'x{i}'" for i in range(n)) + " END FROM facts",
    lambda n: "SELECT 1 AS " + "x" * n,
    lambda n: "SELECT '" + "x" * n * 100 + "'",
    lambda n: "SELECT " + "9" * n,
    lambda n: "SELECT 0." + "1" * n + "::numeric",
    lambda n: "SELECT '" + "9" * n + "'::numeric, 1e" + "9" * min(n, 300),
    lambda n: "SELECT 'ab' LIKE '" + "%a" * n + "'",
    lambda n: "SELECT 'aaaa' ~ '" + "a?" * n + "a" * n + "'",
    lambda n: "SELECT to_char(now(), '" + "YYYY" * n + "')",
    lambda n: "SELECT $" + f"{n} + $".join("1" * (n // 50 + 1)),
    lambda n: ";" * n,
    lambda n: "SELECT 1;" * (n // 20 + 1),
    lambda n: "SELECT * FROM " + ", ".join(f"visits v{i}" for i in range(n // 100 + 2)) + " LIMIT 1",
    lambda n: "SELECT count(*) FROM few f0" + "".join(f" LEFT JOIN few f{i} ON f0.fk = f{i}.fn" for i in range(1, n // 100 + 2)),
    lambda n: "WITH " + ", ".join(f"a{i} AS (SELECT {i} AS x)" for i in range(n // 10 + 1)) + " SELECT * FROM a0",
    lambda n: "SET search_path = " + ", ".join(["public"] * n),
    lambda n: "COPY few TO STDOUT WITH (" + ", ".join(["FORMAT csv"] * n) + ")",
]  # fmt: skip
