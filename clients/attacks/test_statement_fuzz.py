"""Statements of a grammar, deep and wide: each is answered or refused, and the server goes on.

Every statement has `statement_timeout`; what a statement may take of memory and stack is the server's
to bound. Errors of class XX are defects, and are shown in the summary.
"""

import random
import warnings

import wire
from conftest import number

FIRST, COUNT, DEPTH = number("SEED", 1), number("STATEMENTS", 200), number("DEPTH", 100)
WIDTH = 10 * DEPTH
NUMBERS = ["account", "day", "imps", "1", "-7", "0.5", "1e10", "9223372036854775807"]
OTHERS = ["NULL", "'x'", "''", "'2015-01-05'", "true", "'1'", "ARRAY[1, NULL]"]
TYPES = ["bigint", "int", "text", "numeric(38, 10)", "double precision", "date", "timestamp", "boolean", "bigint[]"]
# Sizes that a result must not simply be given.
HUGE = ["repeat('x', 1000000000)", "lpad('x', 2000000000)", "array_repeat(1, 1000000000)", "range(0, 1000000000)"]


class Grammar:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def statement(self):
        kinds = [self.deep, self.wide, self.query, self.query, self.query, self.odd]
        return self.rng.choice(kinds)()

    def deep(self):
        """One thing within itself, many times."""
        n = self.rng.randint(2, DEPTH)
        return self.rng.choice(
            [
                lambda: "SELECT " + "(" * n + "1" + ")" * n,
                lambda: "SELECT " + "ARRAY[" * n + "1" + "]" * n,
                lambda: "SELECT " + "- " * n + "1",
                lambda: "SELECT " + "NOT " * n + "true",
                lambda: "SELECT 1" + "::bigint::text" * n,
                lambda: "SELECT " + "abs(" * n + "1" + ")" * n,
                lambda: "SELECT " + "CASE WHEN true THEN " * n + "1" + " ELSE 0 END" * n,
                lambda: "SELECT * FROM (" * n + "SELECT 1 AS a" + ") t" * n,
                lambda: "SELECT " + "(SELECT " * n + "1" + ")" * n,
                lambda: "EXPLAIN " * n + "SELECT 1",
                lambda: "SELECT true" + " IS NULL" * n,
                lambda: "SELECT 1 WHERE " + "EXISTS (SELECT 1 WHERE " * n + "true" + ")" * n,
                lambda: "CREATE TABLE deep (a bigint" + "[]" * n + ")",
                lambda: "SELECT CAST(NULL AS bigint" + "[]" * n + ")",
                lambda: "SELECT " + "(" * n,
                lambda: "SELECT " + "ARRAY[" * n,
                lambda: "SELECT " + "[" * n,
                lambda: "WITH a0 AS (SELECT 1 AS x)"
                + "".join(f", a{i} AS (SELECT * FROM a{i - 1} UNION ALL SELECT * FROM a{i - 1})" for i in range(1, n // 8 + 2))
                + f" SELECT count(*) FROM a{n // 8 + 1}",
            ]
        )()

    def wide(self):
        """One thing beside itself, many times."""
        n = self.rng.randint(2, WIDTH)
        return self.rng.choice(
            [
                lambda: "SELECT " + " + ".join(["1"] * n),
                lambda: "SELECT count(*) FROM visits WHERE " + " OR ".join(f"account = {i}" for i in range(n)),
                lambda: "SELECT count(*) FROM visits WHERE " + " AND ".join(f"imps <> {i}" for i in range(n)),
                lambda: f"SELECT count(*) FROM visits WHERE account IN ({', '.join(map(str, range(n)))})",
                lambda: " UNION ALL ".join(["SELECT 1"] * (n // 10 + 2)),
                lambda: "SELECT " + ", ".join(f"imps + {i}" for i in range(n)) + " FROM visits LIMIT 1",
                lambda: "VALUES " + ", ".join(f"({i}, 'x')" for i in range(n)),
                lambda: "SELECT " + " || ".join(["'x'"] * n),
                lambda: "SELECT coalesce(" + ", ".join(["NULL"] * n) + ")",
                lambda: "SELECT 1 AS " + "x" * n,
                lambda: "SELECT '" + "x" * n * 100 + "'",
                lambda: "SELECT * FROM " + ", ".join(f"visits v{i}" for i in range(n // 100 + 2)) + " LIMIT 1",
            ]
        )()

    def query(self):
        rng = self.rng
        if rng.random() < 0.3:
            keys = rng_list(rng, 2, lambda: rng.choice(["account", "day", "imps % 7"]))
            text = f"SELECT {keys}, sum({self.number()}), count(*) FROM {self.relation()} GROUP BY {keys}"
        else:
            text = f"SELECT {rng_list(rng, 5, self.anything)} FROM {self.relation()}"
            if rng.random() < 0.7:
                text += f" WHERE {self.truth()}"
        if rng.random() < 0.4:
            text += " ORDER BY 1"
        if rng.random() < 0.5:
            text += f" LIMIT {rng.choice(['0', '1', '10', '-1', 'NULL', '9223372036854775807'])}"
        if rng.random() < 0.2:
            text = f"({text}) {rng.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'])} ({text})"
        return rng.choice(["", "", "", "EXPLAIN ", "EXPLAIN ANALYZE "]) + text

    def relation(self, depth=3):
        kind = self.rng.randrange(6) if depth else 0
        if kind < 2:
            return "visits"
        if kind == 2:
            return f"(SELECT {self.number()} AS account, day, imps FROM {self.relation(depth - 1)}) s{depth}"
        if kind == 3:
            return "(SELECT a.account, a.day, b.imps FROM visits a JOIN visits b ON a.account = b.imps) j"
        if kind == 4:
            count = self.rng.choice([1, 1000, 10**9])
            return f"(SELECT n AS account, 20150101 AS day, n AS imps FROM generate_series(1, {count}) AS g(n)) g"
        return "(SELECT a.* FROM visits a CROSS JOIN visits b) c"

    def anything(self, depth=3):
        """Mostly of one type; now and then of none, for the type checker."""
        if self.rng.random() < 0.1:
            return self.rng.choice(OTHERS)
        if self.rng.random() < 0.03:
            return self.rng.choice(HUGE)
        return self.rng.choice([self.number, self.truth])(depth)

    def number(self, depth=3):
        if depth == 0:
            return self.rng.choice(NUMBERS)
        one, truth = lambda: self.number(depth - 1), lambda: self.truth(depth - 1)
        return self.rng.choice(
            [
                one,
                lambda: f"({one()} {self.rng.choice('+-*/%')} {one()})",
                lambda: f"abs({one()})",
                lambda: f"length(CAST({one()} AS text))",
                lambda: f"CAST({self.anything(depth - 1)} AS {self.rng.choice(TYPES)})",
                lambda: f"(SELECT max(imps) FROM visits v WHERE v.account = {self.rng.choice(NUMBERS)})",
                lambda: f"sum({self.rng.choice(NUMBERS)}) OVER (PARTITION BY account ORDER BY day)",
                lambda: f"CASE WHEN {truth()} THEN {one()} END",
                lambda: f"coalesce({one()}, {one()})",
            ]
        )()

    def truth(self, depth=3):
        one, truth = lambda: self.number(max(depth - 1, 0)), lambda: self.truth(depth - 1)
        if depth == 0:
            return f"{one()} > 3"
        return self.rng.choice(
            [
                lambda: f"({truth()} {self.rng.choice(['AND', 'OR'])} {truth()})",
                lambda: f"NOT {truth()}",
                lambda: f"({one()} {self.rng.choice(['=', '<', '>=', '<>'])} {one()})",
                lambda: f"({one()} BETWEEN {one()} AND {one()})",
                lambda: f"({one()} IN ({one()}, {one()}))",
                lambda: f"({one()} IN (SELECT account FROM visits))",
                lambda: f"({one()} IS NULL)",
                lambda: f"({one()} = ANY (ARRAY[1, 2, NULL]))",
            ]
        )()

    def odd(self):
        """Words in no order, and statements that are cut."""
        words = "SELECT FROM WHERE ( ) [ ] , ; ' \" $$ $1 :: ARRAY CASE COPY EXPLAIN SET PREPARE x AS visits -- /* */ \\ é 0x1 1e999".split()
        if self.rng.random() < 0.5:
            return " ".join(self.rng.choices(words, k=self.rng.randint(1, 40)))
        text = self.query()
        return text[: self.rng.randrange(len(text)) + 1]


def rng_list(rng, most, one):
    return ", ".join(one() for _ in range(rng.randint(1, most)))


def connected(victim):
    session = victim.session()
    session.query("SET statement_timeout = 2000")
    return session


def test_statements_of_the_grammar_end(server):
    victim = server()
    session, defects, answered = connected(victim), [], 0
    for seed in range(FIRST, FIRST + COUNT):
        text = Grammar(seed).statement()
        try:
            session.query(text.replace("\0", ""))
            answered += 1
        except wire.Refused as error:
            if error.sqlstate.startswith("XX"):
                defects.append(f"seed {seed}: {error}: {text[:200]}")
        except ConnectionError:
            assert victim.process.poll() is None, f"seed {seed} ended the server: {text[:500]} {victim.tail()}"
            session = connected(victim)
        except TimeoutError:
            raise AssertionError(f"no end of seed {seed}: {text[:500]}") from None
    session.close()
    for defect in defects:
        warnings.warn(defect, stacklevel=1)
    assert answered > COUNT // 20, "the grammar asks for what can be answered"
    victim.is_well()
