"""Large groupings over files, asked until their columns are kept in memory: then groups are made where the columns are
(`FoldScanExec`), packed and coded, and must be those that PostgreSQL finds. And joins of such files, one side of which tells the scan
of the other its keys, and best rows, of which a scan is told the worst so far.
"""

import random

import shapes
from sides import Refusal

# The first scan of a column decodes it, the second one keeps it.
WARM_UP = 2
STATEMENTS = 220
BEST_ROWS = 150

COLUMNS = f"{shapes.COLUMNS}, word text, wide numeric(38,4), far bigint"

KEYS = [
    "device", "country", "campaign", "day", "active", "account", "at", "cost", "bid", "reach", "word", "wide", "far",
    "upper(device)", "length(country)", "substr(word, 1, 1)", "coalesce(country, '-')", "device || country", "date_trunc('month', day)",
    "extract(month FROM day)", "at::date", "day + 1", "account - 1", "campaign % 3", "clicks / 10", "clicks - impressions", "cost * 2",
    "CASE WHEN clicks > 5 THEN 'many' WHEN clicks IS NULL THEN 'none' ELSE 'few' END", "clicks IS NULL", "far = 0",
]  # fmt: skip

AGGREGATES = [
    "count(*)", "count(clicks)", "count(score)", "count(word)", "sum(clicks)", "sum(reach)", "sum(cost)", "sum(wide)", "avg(clicks)",
    "avg(cost)", "avg(reach)", "avg(wide)", "min(day)", "max(at)", "min(device)", "max(word)", "min(word)", "min(cost)", "max(reach)", "min(far)",
    "max(far)", "max(wide)", "max(score)", "min(score)", "min(-score)", "min(active::int)", "max(country)", "sum(clicks + 1)", "sum(clicks * impressions)", "sum(impressions - clicks)",
    "sum(cost * bid)", "sum(cost * (1 - bid))", "sum(cost * (1 - bid) * (1 + bid))", "avg(cost * 3)", "sum(account::bigint * 1000000)",
    "sum(reach * 1000)", "sum(reach * 100000000)", "sum(2147483600 + clicks)", "max(far + 1)", "min(far - 1)", "sum(length(word))", "max(upper(word))",
    "count(DISTINCT campaign)", "sum(score)", "sum(CASE WHEN device = 'm' THEN clicks ELSE 0 END)", "sum(wide * 10)",
    "count(CASE WHEN clicks > 5 THEN 1 END)", "sum(clicks) FILTER (WHERE device = 'm')", "sum(1000 / clicks)", "sum(clicks::numeric(8,2))", "count(cost + bid)",
]  # fmt: skip

CONDITIONS = [
    "clicks > 10", "clicks <> 0", "day BETWEEN DATE '2026-01-20' AND DATE '2026-02-10'", "device = 'm'", "device <> 'm'", "country LIKE '%e%'", "country IS NULL",
    "cost >= 10.50", "bid < 0.5", "active", "NOT active", "campaign IN (1, 3, 5)", "clicks > impressions / 8", "score > 0.5", "reach = 5", "far > 0", "far IS NOT NULL",
    "at >= TIMESTAMP '2026-01-14 12:00:00'", "(device = 'm' OR country = 'de')", "length(country) = 2", "word < 'm'", "account = 77",
    "CASE WHEN clicks <> 0 THEN 100 / clicks > 3 END", "wide > 1000000", "day = NULL", "word IN ('a', 'word 3', 'word 99')", "coalesce(clicks, 0) = 0",
]  # fmt: skip


JOINED = [
    "CREATE TABLE small (a int, b int)",
    "CREATE TABLE big (a int, b int)",
    "INSERT INTO small SELECT CASE WHEN i % 50 = 0 THEN NULL ELSE i END, i % 7 FROM generate_series(1, 300) g(i)",
    "INSERT INTO big SELECT CASE WHEN i % 40 = 0 THEN NULL ELSE i + 100 END, i % 5 FROM generate_series(1, 20000) g(i)",
    "FLUSH TABLE small",
    "FLUSH TABLE big",
]

JOINS = [
    "SELECT count(*), count(a) FROM (SELECT a FROM small INTERSECT SELECT a FROM big) q",
    "SELECT count(*), count(a) FROM (SELECT a FROM small EXCEPT SELECT a FROM big) q",
    "SELECT count(*), count(a) FROM (SELECT a, b FROM small INTERSECT SELECT a, b FROM big) q",
    "SELECT count(*), count(a) FROM (SELECT a, b FROM small EXCEPT SELECT a, b FROM big) q",
    "SELECT count(*) FROM small WHERE a NOT IN (SELECT a FROM big)",
    "SELECT count(*) FROM small WHERE a NOT IN (SELECT a FROM big WHERE a IS NOT NULL)",
    "SELECT count(*) FROM small WHERE a IN (SELECT a FROM big)",
    "SELECT count(*) FROM small WHERE (a, b) IN (SELECT a, b FROM big)",
    "SELECT count(*) FROM small WHERE NOT EXISTS (SELECT 1 FROM big WHERE big.a = small.a)",
    "SELECT count(*) FROM small WHERE NOT EXISTS (SELECT 1 FROM big WHERE big.a = small.a AND big.b = small.b)",
    "SELECT count(*) FROM small JOIN big ON small.a IS NOT DISTINCT FROM big.a",
    "SELECT count(*) FROM small JOIN big ON small.a IS NOT DISTINCT FROM big.a AND small.b = big.b",
    "SELECT count(*), count(big.a) FROM small LEFT JOIN big ON small.a = big.a AND small.b = big.b",
    "SELECT count(*), count(small.a) FROM small RIGHT JOIN big ON small.a = big.a AND small.b = big.b",
    "SELECT count(*), count(small.a) FROM small FULL JOIN big ON small.a = big.a AND small.b = big.b",
    "SELECT count(*), sum(big.b) FROM small JOIN big ON small.b = big.b - big.a % 5 AND small.a = big.a",
    "SELECT count(*), sum(big.b) FROM small JOIN big ON small.a - small.b = big.a - big.b AND small.b = big.b AND small.a = big.a",
    "SELECT count(*), sum(big.b) FROM big JOIN small ON big.a - big.b = small.a - small.b AND small.b = big.b",
    "SELECT count(*), sum(q.s)::bigint FROM small JOIN (SELECT a, b, sum(b) s FROM big GROUP BY a, b) q ON q.a = small.a AND q.b = small.b",
    "SELECT count(*), sum(q.s)::bigint FROM small LEFT JOIN (SELECT a, b, sum(b) s FROM big GROUP BY a, b) q ON q.a = small.a AND q.b = small.b",
    "SELECT count(*), sum(q.s)::bigint FROM small JOIN (SELECT a, b % 2 AS b, sum(b) s FROM big GROUP BY 1, 2) q ON q.a = small.a AND q.b = small.b",
]  # fmt: skip

# Keys of best rows that have others in them.
WITHIN = [
    "clicks - impressions", "impressions - clicks", "account - campaign", "campaign - account", "CASE WHEN active THEN account END",
    "CASE WHEN device = 'm' THEN clicks ELSE impressions END", "cost - bid", "bid - cost", "impressions % 3", "clicks % 10",
]  # fmt: skip


def statements(rng):
    yield f"CREATE TABLE large ({COLUMNS})"
    ends = ["9223372036854775807", "-9223372036854775808", "0", "1", "-7"]

    def line(row):
        word = rng.choice(["NULL", "'a'", "'ä'", "''", f"'word {rng.randrange(900)}'", f"'word {rng.randrange(9)}'"])
        wide = rng.choice(["NULL", "0.0001", "-12345678901234567890.5", "99999999999999999999999.25", f"{rng.randrange(99)}.5"])
        return f"{row[:-1]}, {word}, {wide}, {rng.choice(['NULL', *ends])})"

    lines = [line(row) for _ in range(3) for row in shapes.rows(rng)]
    # Three files, and rows that are in none.
    for start in range(0, 3900, 1300):
        yield f"INSERT INTO large VALUES {', '.join(lines[start:start + 1300])}"
        yield "FLUSH TABLE large"
    yield f"INSERT INTO large VALUES {', '.join(lines[3900:])}"


def drawn(rng):
    keys = rng.sample(KEYS, rng.choice([0, 1, 1, 1, 2, 2, 3]))
    aggregates = rng.sample(AGGREGATES, rng.randint(1, 4))
    conditions = rng.sample(CONDITIONS, rng.choice([0, 0, 1, 1, 2]))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    by = f" GROUP BY {', '.join(str(n + 1) for n in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join(keys + aggregates)} FROM large{where}{by}"


def best_rows(rng):
    """The first rows by up to three keys, often some that are part of others; then by all that is shown."""
    columns = rng.sample(KEYS[: KEYS.index("far") + 1] + ["clicks", "impressions"], rng.randint(1, 4))
    keys = []
    for _ in range(rng.randint(1, 3)):
        key = rng.choice([*KEYS, *columns, *columns, *WITHIN])
        keys.append(key + rng.choice(["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]))
    where = f" WHERE {rng.choice(CONDITIONS)}" if rng.random() < 0.4 else ""
    limit = rng.choice([1, 3, 10, 100])
    return f"SELECT {', '.join(columns)} FROM large{where} ORDER BY {', '.join(keys + columns)} LIMIT {limit}"


def run(oracle, seed):
    """Compares groupings and joins; says so if groups were not made where columns are kept, or no scan was told keys."""
    rng = random.Random(f"{seed}/groupings")
    for statement in [*statements(rng), *JOINED]:
        oracle.stoa.must(statement)
        if not statement.startswith("FLUSH"):
            oracle.postgres.must(statement)
    # Such small tables are reports otherwise, and an answer would be kept.
    for name in ("short_path", "result_reuse"):
        oracle.stoa.must(f"SET {name} = off")
    for _ in range(WARM_UP):
        for name in ("large", "small", "big"):
            oracle.stoa.must(f"SELECT * FROM {name}")
    told = 0
    for sql in JOINS:
        oracle.check(sql)
        plan = oracle.stoa.ask(f"EXPLAIN ANALYZE {sql}")
        told += not isinstance(plan, Refusal) and any("dynamic_filters" in row[-1] for row in plan.rows)
    if told < len(JOINS) // 2:
        yield f"in {told} of {len(JOINS)} joins, scans were told keys"
    for _ in range(BEST_ROWS):
        oracle.check(best_rows(rng), True, convert=shapes.by_value)
    folded = 0
    for _ in range(STATEMENTS):
        sql = drawn(rng)
        oracle.check(sql, convert=shapes.by_value)
        plan = oracle.stoa.ask(f"EXPLAIN ANALYZE {sql}")
        folded += not isinstance(plan, Refusal) and any("FoldScanExec" in row[-1] for row in plan.rows)
    for change in ("DELETE FROM large WHERE campaign = 3", "UPDATE large SET clicks = clicks + 1 WHERE device = 'tv'"):
        for side in (oracle.postgres, oracle.stoa):
            side.must(change)
        for _ in range(STATEMENTS // 10):
            oracle.check(drawn(rng), convert=shapes.by_value)
    for name in ("short_path", "result_reuse"):
        oracle.stoa.must(f"RESET {name}")
    # Others have FILTER, DISTINCT or sums of floating point numbers.
    if folded < STATEMENTS // 2:
        yield f"only {folded} of {STATEMENTS} groupings were made where columns are kept"
