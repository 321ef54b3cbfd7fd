"""Reports as BI tools and pages of reports write them: all of them take the short path, and answer as PostgreSQL does.

A shape is a statement with places for values. It is asked with one draw of values after another: the first ones are
planned, those after them must be on the short path (`system.queries.short_path`), whether there are rows or none.
"""

import random
import re

from compare import compare
from sides import Answer, Refusal

# Statements of one form that are planned before one is answered on the short path.
PLANNED_FIRST = 2
# Draws of values per shape.
DRAWS = 7

COLUMNS = """account int, campaign int, device text, country text, day date, at timestamp, active boolean,
    impressions int, clicks int, reach bigint, cost decimal(12,2), bid decimal(18,6), score double precision, rate real"""

# Small tables that others refer to.
SMALL = ["campaigns (id int, name text, advertiser int, budget decimal(10,2))", "advertisers (id int, name text)"]

# By step: simple heads, then those that put groups together, windows, dimensions, two periods.
SHAPES = {
    "click-through rate": """
        SELECT device, sum(clicks) AS clicks, sum(impressions) AS impressions,
               CAST(sum(clicks) AS double precision) / NULLIF(CAST(sum(impressions) AS double precision), 0) AS ctr
        FROM ads WHERE account = {account} AND day BETWEEN {from} AND {to} GROUP BY device ORDER BY device""",
    "cost per click": """
        SELECT campaign, sum(cost) / NULLIF(sum(clicks), 0) AS cpc, round(sum(cost), 1) AS cost,
               coalesce(sum(clicks), 0) AS clicks
        FROM ads WHERE account = {account} AND day >= {from} GROUP BY campaign ORDER BY 2 DESC NULLS LAST, campaign""",
    "metabase": """
        SELECT "public"."ads"."country" AS "country", count(*) AS "count", SUM("public"."ads"."cost") AS "sum",
               SUM("public"."ads"."cost") * 1.19 AS "gross"
        FROM "public"."ads" WHERE "public"."ads"."account" = {account} AND "public"."ads"."day" >= {from}
        GROUP BY "public"."ads"."country" ORDER BY "sum" DESC, "public"."ads"."country" ASC""",
    "having": """
        SELECT campaign, device, sum(clicks) AS clicks, avg(impressions) AS mean FROM ads
        WHERE account = {account} AND day BETWEEN {from} AND {to}
        GROUP BY campaign, device HAVING sum(clicks) > 40 AND count(*) >= 2 ORDER BY campaign, device""",
    "order by an expression": """
        SELECT campaign, sum(clicks) AS clicks, sum(impressions) AS impressions FROM ads
        WHERE account = {account} AND device = {device} GROUP BY campaign
        ORDER BY sum(clicks) * 1.0 / NULLIF(sum(impressions), 0) DESC NULLS LAST, campaign LIMIT 5 OFFSET 1""",
    "case of sums": """
        SELECT campaign, CASE WHEN sum(cost) > 100 THEN 'large' WHEN sum(cost) IS NULL THEN 'none' ELSE 'small' END AS size,
               sum(cost)::bigint AS whole, min(day)::text AS first
        FROM ads WHERE account = {account} AND campaign IN ({campaign}, {campaign}, {campaign}) GROUP BY 1 ORDER BY 1""",
    "rows": """
        SELECT day, campaign, clicks * 2 AS twice, impressions - clicks AS missed, upper(device) AS device, score, rate
        FROM ads WHERE account = {account} AND day = {from} AND campaign > {campaign}
        ORDER BY day, campaign, 3, 4, 5, score, rate LIMIT 20""",
    "rows with a condition that reports do not judge": """
        SELECT campaign, device, country, clicks FROM ads
        WHERE account = {account} AND day = {from} AND (device LIKE 'm%' OR country IS NULL) AND score > 0.5
        ORDER BY campaign, device, country, clicks""",
    "star over a subquery": """
        SELECT * FROM (SELECT day, sum(cost) AS cost, sum(clicks) AS clicks FROM ads
                       WHERE account = {account} AND day BETWEEN {from} AND {to} GROUP BY day) t
        WHERE clicks > 10 ORDER BY day LIMIT 100""",
    "one line": """
        SELECT sum(clicks) AS clicks, sum(cost) / count(*) AS mean, max(day) - min(day) AS days FROM ads
        WHERE account = {account} AND day BETWEEN {from} AND {to}""",
    "weeks": """
        SELECT date_trunc('week', day) AS week, sum(clicks) AS clicks, count(*) AS lines, sum(reach) AS reach, min(cost) AS least, max(at) AS last
        FROM ads WHERE account = {account} AND day BETWEEN {from} AND {to} GROUP BY 1 ORDER BY 1""",
    "superset": """
        SELECT DATE_TRUNC('month', day) AS __timestamp, device AS device, sum(cost) AS "SUM(cost)" FROM public.ads
        WHERE day >= CAST({date} AS date) AND day < {date}::date AND account = {account}
        GROUP BY DATE_TRUNC('month', day), device ORDER BY "SUM(cost)" DESC NULLS LAST, 1, 2 LIMIT 1000""",
    "quarters": """
        SELECT extract(year FROM day) AS year, extract(month FROM day) AS month, sum(clicks), sum(cost) FROM ads
        WHERE account = {account} GROUP BY extract(year FROM day), extract(month FROM day) ORDER BY 1, 2""",
    "filters": """
        SELECT campaign, sum(clicks) FILTER (WHERE device = 'm') AS mobile, count(*) FILTER (WHERE device IS NULL) AS unknown,
               sum(cost) FILTER (WHERE country IN ('de', 'at')) AS near, sum(clicks) AS clicks
        FROM ads WHERE account = {account} AND day >= {from} GROUP BY campaign ORDER BY campaign""",
    "columns by case": """
        SELECT day, SUM(CASE WHEN device = 'm' THEN clicks ELSE 0 END) AS m, SUM(CASE WHEN device = 'd' THEN clicks ELSE 0 END) AS d,
               SUM(CASE WHEN country = 'de' THEN cost END) AS de
        FROM ads WHERE account = {account} AND day BETWEEN {from} AND {to} GROUP BY day ORDER BY day""",
    "distinct": """
        SELECT day, count(DISTINCT campaign) AS campaigns, sum(clicks) AS clicks FROM ads
        WHERE account = {account} AND day BETWEEN {from} AND {to} GROUP BY day ORDER BY day""",
    "distinct ones": """
        SELECT count(DISTINCT campaign) AS campaigns, count(DISTINCT device) AS devices, sum(clicks) AS clicks FROM ads
        WHERE account = {account} AND day >= {from}""",
    "distinct rows": """
        SELECT DISTINCT device, country FROM ads WHERE account = {account} AND day BETWEEN {from} AND {to} ORDER BY 1, 2""",
    "looker": """
        SELECT ads.device AS "ads.device", COALESCE(SUM(CASE WHEN (ads.active) THEN ads.cost ELSE NULL END), 0) AS "ads.spent",
               COUNT(CASE WHEN ads.clicks > 10 THEN 1 ELSE NULL END) AS "ads.clicked"
        FROM public.ads AS ads WHERE ((( ads.day ) >= {from} AND ( ads.day ) < {to})) AND ads.account = {account}
        GROUP BY 1 ORDER BY 2 DESC, 1 FETCH NEXT 500 ROWS ONLY""",
    "products of rows": """
        SELECT device, sum(clicks * bid) AS value, sum(impressions * 2 + 1) AS odd, avg(cost) AS mean, sum(score) AS scores
        FROM ads WHERE account = {account} AND day BETWEEN {from} AND {to} GROUP BY device ORDER BY device""",
    "condition on a group, judged above": """
        SELECT campaign, sum(clicks) AS clicks FROM ads
        WHERE account = {account} AND (device = 'm' OR country = 'de') AND day >= {from} GROUP BY campaign ORDER BY campaign""",
    "moving sum": """
        SELECT day, sum(clicks) AS clicks, sum(sum(clicks)) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week,
               lag(sum(clicks)) OVER (ORDER BY day) AS before
        FROM ads WHERE account = {account} AND day BETWEEN {from} AND {to} GROUP BY day ORDER BY day""",
    "rank and share": """
        SELECT device, campaign, sum(cost) AS cost, rank() OVER (PARTITION BY device ORDER BY sum(cost) DESC NULLS LAST) AS place,
               sum(cost) / NULLIF(sum(sum(cost)) OVER (PARTITION BY device), 0) AS share,
               row_number() OVER (ORDER BY campaign, device) AS number
        FROM ads WHERE account = {account} AND day >= {from} GROUP BY device, campaign ORDER BY device, campaign""",
    "best of each": """
        SELECT * FROM (SELECT device, campaign, sum(clicks) AS clicks,
                              row_number() OVER (PARTITION BY device ORDER BY sum(clicks) DESC NULLS LAST, campaign) AS place
                       FROM ads WHERE account = {account} AND day >= {from} GROUP BY device, campaign) t
        WHERE place <= 2 ORDER BY device, place""",
    "names": """
        SELECT c.name, sum(a.clicks) AS clicks, sum(a.cost) AS cost, count(*) AS lines
        FROM ads a JOIN campaigns c ON c.id = a.campaign
        WHERE a.account = {account} AND a.day >= {from} GROUP BY c.name ORDER BY 2 DESC NULLS LAST, 1""",
    "names where there are some": """
        SELECT coalesce(c.name, 'none') AS name, sum(a.clicks) AS clicks FROM ads a LEFT JOIN campaigns c ON a.campaign = c.id
        WHERE a.account = {account} AND a.day BETWEEN {from} AND {to} GROUP BY 1 ORDER BY 1""",
    "names of names": """
        SELECT v.name AS advertiser, c.name AS campaign, sum(a.clicks) AS clicks, sum(a.impressions) AS impressions
        FROM ads a LEFT JOIN campaigns c ON a.campaign = c.id LEFT JOIN advertisers v ON v.id = c.advertiser
        WHERE a.account = {account} AND a.day >= {from} GROUP BY v.name, c.name ORDER BY 1, 2""",
    "names chosen": """
        SELECT a.day, c.name, sum(a.cost) AS cost FROM ads a JOIN campaigns c ON c.id = a.campaign AND c.budget > 100
        WHERE a.account = {account} AND c.advertiser = 1 GROUP BY a.day, c.name ORDER BY a.day, c.name""",
    "names of rows": """
        SELECT a.day, c.name, a.clicks FROM ads a JOIN campaigns c ON c.id = a.campaign
        WHERE a.account = {account} AND a.day = {from} ORDER BY 1, 2, 3""",
    "two periods": """
        WITH now AS (SELECT campaign, sum(clicks) AS clicks FROM ads WHERE account = {account} AND day >= {from} GROUP BY campaign),
             before AS (SELECT campaign, sum(clicks) AS clicks FROM ads WHERE account = {account} AND day < {from} GROUP BY campaign)
        SELECT coalesce(now.campaign, before.campaign) AS campaign, now.clicks, before.clicks AS was, now.clicks - before.clicks AS more
        FROM now FULL JOIN before ON now.campaign = before.campaign ORDER BY 1, 2, 3""",
    "two periods below each other": """
        SELECT 'now' AS period, device, sum(clicks) AS clicks FROM ads WHERE account = {account} AND day >= {from} GROUP BY device
        UNION ALL
        SELECT 'before', device, sum(clicks) FROM ads WHERE account = {account} AND day < {from} GROUP BY device
        ORDER BY 1, 2""",
    "totals": """
        SELECT device, country, sum(clicks) AS clicks, count(*) AS lines FROM ads
        WHERE account = {account} AND day >= {from} GROUP BY ROLLUP (device, country) ORDER BY 1, 2, 3, 4""",
    "share of a total": """
        SELECT t.device, t.clicks, t.clicks * 100.0 / NULLIF(s.clicks, 0) AS share
        FROM (SELECT device, sum(clicks) AS clicks FROM ads WHERE account = {account} AND day >= {from} GROUP BY device) t
        CROSS JOIN (SELECT sum(clicks) AS clicks FROM ads WHERE account = 1) s ORDER BY 1""",
    "nested": """
        WITH days AS (SELECT day, sum(clicks) AS clicks FROM ads WHERE account = {account} AND day BETWEEN {from} AND {to} GROUP BY day)
        SELECT count(*) AS days, max(clicks) AS most, avg(clicks) AS mean FROM days""",
    "many": """
        SELECT campaign, sum(clicks) * 2 AS twice FROM ads WHERE account = {account} AND campaign IN ({list}) GROUP BY campaign ORDER BY 1""",
    "many, a report": """
        SELECT campaign, sum(clicks) AS clicks, count(*) AS lines FROM ads WHERE campaign IN ({list}) AND day BETWEEN {from} AND {to}
        GROUP BY campaign ORDER BY 1""",
    "none of many": """
        SELECT campaign, sum(clicks) AS clicks FROM ads WHERE account = {account} AND campaign NOT IN ({list}) GROUP BY campaign ORDER BY 1""",
    "none of many, computed": """
        SELECT country, sum(clicks) * 1.5 AS clicks FROM ads WHERE reach NOT IN ({list}) AND country NOT IN ({texts}) GROUP BY country ORDER BY 1""",
    "texts": """
        SELECT country, device, sum(cost) / 2 AS half FROM ads WHERE country IN ({texts}) GROUP BY country, device ORDER BY 1, 2""",
    "texts, a report": """
        SELECT country, sum(cost) AS cost FROM ads WHERE country IN ({texts}) AND account = {account} GROUP BY country ORDER BY 1""",
    "an array": """
        SELECT device, sum(clicks) AS clicks, max(impressions) AS most FROM ads WHERE campaign = ANY (ARRAY[{list}]) GROUP BY device ORDER BY 1""",
    "an array, computed": """
        SELECT device, sum(clicks) - 1 AS clicks FROM ads WHERE campaign = ANY (ARRAY[{list}]) AND day >= {from} GROUP BY device ORDER BY 1""",
    "days": """
        SELECT day, count(*) * 2 AS lines FROM ads WHERE day IN ({days}) GROUP BY day ORDER BY 1""",
}

# Statements whose values are arrays: they are asked with parameters only.
ARRAYS = {
    "any": "SELECT campaign, sum(clicks) AS clicks FROM ads WHERE campaign = ANY ({ints}) GROUP BY campaign ORDER BY 1",
    "any, computed": "SELECT campaign, sum(clicks) * 2 AS twice FROM ads WHERE account = {account} AND campaign = ANY ({ints}) GROUP BY campaign ORDER BY 1",
    "any text": "SELECT country, sum(clicks) * 2 AS twice FROM ads WHERE country = ANY ({strings}) GROUP BY country ORDER BY 1",
    "none": "SELECT campaign, sum(clicks) AS clicks FROM ads WHERE campaign <> ALL ({ints}) GROUP BY campaign ORDER BY 1",
    "a row or none": "SELECT day, clicks, upper(device) FROM ads WHERE campaign = ANY ({ints}) AND day = {from} ORDER BY 1, 2, 3 LIMIT 9",
}

# Lists with something unusual in them, which may be planned.
UNUSUAL = [
    "campaign IN (1, NULL, 3)",
    "campaign NOT IN (1, NULL, 3)",
    "campaign IN (1, 2.0, 3.5)",
    "campaign IN (1, '2', 3)",
    "campaign IN ('1', '2')",
    "campaign IN (1, -2, - 3, +4)",
    "campaign IN (1::int, 2::bigint)",
    "campaign IN (3000000000, 5, -9223372036854775808)",
    "campaign IN (99999999999999999999, 5)",
    "cost IN (1, 2, 3, 4, 5, 6, 7, 8, 9)",
    "cost NOT IN (12.25, 1)",
    "score IN (0, 1, 3)",
    "score IN (0.5, 1.5)",
    "rate NOT IN (1, -2)",
    "country IN ('de', 'it''s', '')",
    "country IN ('de', NULL)",
    "device IN ('m') AND device NOT IN ('d', 'tv')",
    "NOT (campaign IN (1, 2, 3) AND country IN ('de', 'at'))",
    "(campaign IN (1, 2, 3)) IS NOT TRUE",
    "campaign IN (1, 2, 3) OR campaign IN (4, 5) OR country NOT IN ('de')",
    "campaign IN (1, 2, 3, 4, 5) AND campaign IN (4, 5, 6) AND campaign NOT IN (5)",
    "day IN ('2026-01-05', '2026-02-06')",
    "day IN (DATE '2026-01-05', '2026-02-06')",
    "at IN ('2026-01-02 03:30:00', TIMESTAMP '2026-01-03 03:30:00')",
    "(account, campaign) IN ((1, 2), (2, 3))",
    "campaign = ANY ('{1,2,3}')",
    "campaign = ANY (ARRAY[1, 2, NULL])",
    "campaign <> ALL (ARRAY[1, 2, 3])",
    "campaign <> ANY (ARRAY[1])",
    "campaign = ANY (ARRAY[]::int[])",
    "campaign <> ALL (ARRAY[]::int[])",
    "campaign IN (SELECT id FROM campaigns WHERE id IN (1, 2, 3))",
    "country = ANY (ARRAY['de', 'at'])",
    "day = ANY (ARRAY['2026-01-05'])",
]


def rows(rng):
    """The lines of `ads`; some values are missing, some are unusual."""

    def null(value, share=9):
        return "NULL" if rng.randrange(share) == 0 else value

    def line():
        impressions = rng.randint(0, 400)
        score = rng.choice(["0.25", "0.5", "0.75", "1.5", "-0.0", "0", "'NaN'", "3"])
        return (
            f"({rng.choice([1, 1, 1, 2, 2, 3])}, {null(rng.randint(1, 12))}, {null(repr(rng.choice(['m', 'd', 'tv'])))},"
            f" {null(repr(rng.choice(['de', 'at', 'ch', ''])))}, {null(day(rng), 40)},"
            f" {null(f'''TIMESTAMP '2026-01-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:30:00' ''')},"
            f" {null(rng.choice(['true', 'false']))}, {null(impressions)}, {null(rng.randint(0, impressions // 4))}, {null(rng.choice([1, 5, 10**12]))},"
            f" {null(f'{rng.randint(0, 5000) / 100:.2f}')}, {null(f'{rng.randint(0, 10**7) / 10**6:.6f}')},"
            f" {null(score)}, {null(rng.choice(['0.5', '1.25', '-2']))})"
        )

    return [line() for _ in range(1500)]


def day(rng):
    return f"DATE '2026-{rng.randint(1, 3):02}-{rng.randint(1, 28):02}'"


def statements(rng):
    """What makes the tables: most rows in files of Stoa's, some in its log."""
    yield f"CREATE TABLE ads ({COLUMNS})"
    for table in SMALL:
        yield f"CREATE TABLE {table}"
    lines = rows(rng)
    yield f"INSERT INTO ads VALUES {', '.join(lines[:1300])}"
    names = ["'Spring'", "'Summer'", "NULL", "'Sale'", "'Brand'"]
    campaigns = (f"({n}, {rng.choice(names)}, {rng.choice([1, 2, 'NULL', 9])}, {rng.randint(0, 900)}.50)" for n in range(11))
    yield f"INSERT INTO campaigns VALUES {', '.join(campaigns)}"
    yield "INSERT INTO advertisers VALUES (1, 'Acme'), (2, 'Initech'), (3, NULL)"
    yield "FLUSH TABLE ads"
    yield f"INSERT INTO ads VALUES {', '.join(lines[1300:])}"


def values(rng):
    start, days = rng.randint(1, 40), rng.randint(0, 40)
    date = "DATE '2026-{:02}-{:02}'"
    first, last = (date.format(1 + at // 28, 1 + at % 28) for at in (start, min(start + days, 83)))
    return {
        # Of the last account there is nothing.
        "account": lambda: rng.choice([1, 1, 2, 3, 77]),
        "campaign": lambda: rng.randint(1, 12),
        "device": lambda: rng.choice(["'m'", "'d'", "'none'"]),
        "from": lambda: first,
        "to": lambda: last,
        "date": lambda: rng.choice([first, last]).removeprefix("DATE "),
        "list": lambda: ", ".join(str(rng.randint(-9, 5000)) for _ in range(rng.choice([1, 2, 100, 3000]))),
        "texts": lambda: ", ".join(rng.choice(["'de'", "'ch'", "''", "'it''s'", f"'{n}'"]) for n in range(rng.choice([1, 2, 9, 2000]))),
        "days": lambda: ", ".join(day(rng) for _ in range(rng.choice([1, 3, 40]))),
        "ints": lambda: "{" + ",".join(rng.choice(["NULL", *(str(n) for n in range(9))]) for _ in range(rng.choice([0, 1, 3, 3000]))) + "}",
        "strings": lambda: "{" + ",".join(rng.choice(["NULL", "de", '""', '"it\'s"', "at"]) for _ in range(rng.choice([0, 1, 3, 900]))) + "}",
    }


def drawn(shape, rng):
    """A statement of a shape; places of one name have different values, dates the same."""
    sql, chosen = " ".join(shape.split()), values(rng)
    for name, value in chosen.items():
        while f"{{{name}}}" in sql:
            sql = sql.replace(f"{{{name}}}", str(value()), 1)
    return sql


def run(oracle, rng):
    """Compares all shapes; says which of them were not on the short path."""
    for name, shape in SHAPES.items():
        for number in range(DRAWS):
            sql = drawn(shape, rng)
            oracle.check(sql, ordered=is_ordered(sql), convert=by_value)
            if number >= PLANNED_FIRST and not took_short_path(oracle.stoa, sql):
                yield f"{name}: planned, although it was drawn {number} times before: {sql}"


# Forms that are planned: NULL is none of an empty array, and some need rows in order.
MAY_BE_PLANNED = {"none"}


def run_unnamed(oracle, rng):
    """The same with parameters, but parsed with each execution; says which of them were not on the short path."""
    for name, shape in {**SHAPES, **ARRAYS}.items():
        sql, names = with_parameters(shape)
        if LISTS & set(names):
            continue
        for number in range(DRAWS):
            chosen = values(rng)
            given = [bare(chosen[name]()).encode() for name in names]
            expected, actual = (side.outcome(side.connection.exec_params(sql.encode(), given)) for side in (oracle.postgres, oracle.stoa))
            oracle.note(compare(by_value(expected, actual), actual, is_ordered(sql)), f"{sql}  -- {given}")
            if number >= PLANNED_FIRST and name not in MAY_BE_PLANNED and not has_nothing(given) and not took_short_path(oracle.stoa, sql):
                yield f"{name}: planned, although it was asked without a name {number} times before: {sql}"


def has_nothing(given):
    """Whether an array is without a value: no row is read then, which planning finds."""
    return any(value.startswith(b"{") and not set(value.strip(b"{}").split(b",")) - {b"NULL", b""} for value in given)


def run_unusual(oracle):
    """Lists with NULL, casts, and values of several kinds."""
    for condition in UNUSUAL:
        for form in ("SELECT count(*) AS lines, sum(clicks) AS clicks FROM ads WHERE {}", "SELECT count(*) + 1 AS lines, sum(clicks) * 2 AS twice FROM ads WHERE {}"):
            for _ in range(PLANNED_FIRST + 2):
                oracle.check(form.replace("{}", condition), convert=by_value)
    # Longer than what is kept.
    for kind in ("{}", "'{}'"):
        column = "campaign" if kind == "{}" else "country"
        many = ", ".join(kind.format(n) for n in range(3, 120_000))
        for negated in ("", "NOT "):
            for _ in range(2):
                oracle.check(f"SELECT count(*) AS lines, sum(clicks) * 2 AS twice FROM ads WHERE {column} {negated}IN ({many})", convert=by_value)


# What has no place for one value.
LISTS = {"list", "texts", "days"}


def run_prepared(oracle, rng):
    """The same as prepared statements with parameters; says which of them were not on the short path."""
    for name, shape in {**SHAPES, **ARRAYS}.items():
        sql, names = with_parameters(shape)
        if LISTS & set(names):
            continue
        answers = {}
        for side in (oracle.postgres, oracle.stoa):
            side.connection.prepare(b"shape", sql.encode())
        for number in range(DRAWS):
            chosen = values(rng)
            given = [bare(chosen[name]()).encode() for name in names]
            for side in (oracle.postgres, oracle.stoa):
                answers[side] = side.outcome(side.connection.exec_prepared(b"shape", given))
            expected, actual = answers[oracle.postgres], answers[oracle.stoa]
            oracle.note(compare(by_value(expected, actual), actual, is_ordered(sql)), f"{sql}  -- {given}")
            if number and name not in MAY_BE_PLANNED and not has_nothing(given) and not took_short_path(oracle.stoa, sql):
                yield f"{name}: planned, although it was prepared: {sql}"
        for side in (oracle.postgres, oracle.stoa):
            side.must("DEALLOCATE shape")


def with_parameters(shape):
    """The statement with $1, $2, …, and the names of their values."""
    names = []

    def number(place):
        names.append(place[1])
        return f"${len(names)}"

    return re.sub(r"\{(\w+)\}", number, " ".join(shape.split())), names


def bare(value):
    """A value without what makes it a literal."""
    return str(value).removeprefix("DATE ").strip("'")


def by_value(expected, actual):
    """PostgreSQL's answer by Stoa's types where those differ on purpose: sums of bigint, weeks of dates."""
    if isinstance(expected, Refusal) or isinstance(actual, Refusal) or len(expected.types) != len(actual.types):
        return expected
    pairs = list(zip(expected.types, actual.types))
    rows = expected.rows
    for column, pair in enumerate(pairs):
        if pair == ("timestamptz", "timestamp"):
            rows = tuple((*row[:column], row[column] and row[column].removesuffix("+00"), *row[column + 1 :]) for row in rows)
    differ = {("numeric", "bigint"), ("timestamptz", "timestamp")}
    types = tuple(other if (one, other) in differ else one for one, other in pairs)
    return Answer(types, rows, expected.names)


def is_ordered(sql):
    return "order by" in sql.lower().rsplit(")", 1)[-1]


def took_short_path(stoa, sql):
    # The text may be cut there.
    quoted = sql[:200].replace("'", "''")
    answer = stoa.ask(f"SELECT short_path FROM system.queries WHERE left(sql, 200) = '{quoted}' ORDER BY id DESC LIMIT 1")
    if isinstance(answer, Refusal):
        raise SystemExit(f"system.queries: {answer.message}")
    return bool(answer.rows) and answer.rows[0][0] == "t"


def after_changes(oracle, rng):
    """The same after rows were deleted, added and put into files anew."""
    changes = [
        "DELETE FROM ads WHERE campaign = 3 AND day < DATE '2026-02-01'",
        "INSERT INTO ads (account, campaign, day, clicks) VALUES (1, 4, DATE '2026-01-15', 1000000)",
        "UPDATE campaigns SET name = 'Renamed' WHERE id = 4",
    ]
    for change in changes:
        for side in (oracle.postgres, oracle.stoa):
            side.must(change)
        for shape in SHAPES.values():
            sql = drawn(shape, rng)
            oracle.check(sql, ordered=is_ordered(sql), convert=by_value)
