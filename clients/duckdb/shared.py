"""Statements of few shapes, from sessions with other settings, against DuckDB on the same rows.

Each session keeps its connection and asks shapes that all others ask, too: as text with literals, with
parameters, and prepared. Settings, namespaces and null ordering change on the way. What one session's
statement leaves in the server's caches must not show in another's answer.
"""

import argparse
import datetime as dt
import os
import random
import sys
import threading
from decimal import Decimal

import duckdb
import psycopg

TEXTS = ["a", "b", "a, b", "{a,b}", '"a, b"', "it's", "", "NULL", "\\0", "\\x00", 'a", "b', "Ünï", "1", "%s", "$1"]
SCHEMAS = ["public", "other"]
NULLS = "datafusion.sql_parser.default_null_ordering"
COLUMNS = {
    "account": "bigint", "region": "text", "day": "date", "cost": "decimal(12,2)", "rate": "double precision",
    "time_at": "timestamp", "seen": "timestamptz", "flag": "boolean",
}  # fmt: skip
UTC = dt.timezone.utc


def row(rng):
    values = [
        rng.randrange(30), rng.choice(TEXTS), dt.date(2026, 1, rng.randrange(1, 29)),
        Decimal(rng.randrange(10000)) / 100, rng.randrange(100) / 2,
        dt.datetime(2026, 1, 2, rng.randrange(24), 30), dt.datetime(2026, 1, 2, rng.randrange(24), 30, tzinfo=UTC),
        rng.random() < 0.5,
    ]  # fmt: skip
    return [None if rng.randrange(9) == 0 else value for value in values]


def value_of(column, rng):
    match column:
        case "account":
            return rng.randrange(-1, 32)
        case "region":
            return rng.choice(TEXTS)
        case "day":
            return dt.date(2026, 1, rng.randrange(1, 32))
        case "cost":
            return Decimal(rng.randrange(10000)) / 100
        case "rate":
            return rng.randrange(100) / 2
        case "time_at":
            return dt.datetime(2026, 1, 2, rng.randrange(24), 30)
        case "seen":
            return dt.datetime(2026, 1, 2, rng.randrange(24), 30, tzinfo=UTC)
        case _:
            return rng.random() < 0.5


def literal(value):
    """A value as SQL that both engines read alike."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            name = "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP"
            return f"{name} '{value:%Y-%m-%d %H:%M:%S}{'+00' if value.tzinfo else ''}'"
        case dt.date():
            return f"DATE '{value}'"
        case list():
            return "ARRAY[" + ", ".join(map(literal, value)) + "]"
        case _:
            return str(value)


class Question:
    """A statement with places `?`, their values, and how DuckDB is asked the same."""

    FORMS = [
        ("SELECT count(*), sum(account) FROM events WHERE {a}", False),
        ("SELECT region, count(*) FROM events WHERE {a} GROUP BY region ORDER BY region {nulls}", True),
        ("SELECT region FROM events WHERE {a} ORDER BY region {nulls} LIMIT 5", True),
        ("SELECT account, day FROM events WHERE {a} ORDER BY account {nulls}, day {nulls} LIMIT 7", True),
        ("SELECT upper(region) AS r FROM events WHERE {a} ORDER BY r {nulls} LIMIT 4", True),
        ("SELECT count(*) + 1, max(cost), min(day) FROM events WHERE {a}", False),
        ("SELECT count(*), min(time_at) FROM events WHERE {a} AND {b}", False),
        ("SELECT count(DISTINCT account) FROM events WHERE {a} OR {b}", False),
        ("SELECT max(seen), sum(cost) FROM events WHERE {a} AND {b}", False),
        ("SELECT day, sum(cost), count(region) FROM events WHERE {a} GROUP BY day ORDER BY day {nulls}", True),
        ("SELECT count(*) FROM events WHERE {a} AND account IN (SELECT account FROM other.events WHERE {b})", False),
    ]

    def __init__(self, shape, rng):
        choices = random.Random(shape)
        form, self.ordered = choices.choice(self.FORMS)
        self.values = []
        parts = {"a": self.condition(choices, rng)}
        if "{b}" in form:
            parts["b"] = self.condition(choices, rng)
        self.sql = form.format(nulls="", **parts)
        self.oracle = form.format(nulls="NULLS {nulls}", **parts)

    def condition(self, choices, rng):
        column = choices.choice([*COLUMNS, "account", "region"])
        places = {"= ANY(?)": 1, "BETWEEN ? AND ?": 2, "IN (?, ?)": 2, "= ?": 1, ">= ?": 1, "< ?": 1}
        operators = list(places) if column in ("region", "account") else list(places)[1:]
        operator = choices.choice(operators)
        if operator == "= ANY(?)":
            self.values.append([value_of(column, rng) for _ in range(rng.randrange(1, 3))])
        else:
            self.values += [value_of(column, rng) for _ in range(places[operator])]
        return f"{column} {operator}"

    def with_literals(self, sql):
        first, *rest = sql.split("?")
        return first + "".join(literal(value) + part for value, part in zip(self.values, rest, strict=True))


def plain(rows, ordered):
    """Rows as both engines should have them."""

    def cell(value):
        if isinstance(value, dt.datetime) and value.tzinfo:
            return value.astimezone(UTC)
        return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value

    rows = [tuple(map(cell, row)) for row in rows]
    return rows if ordered else sorted(rows, key=repr)


class Oracle:
    """DuckDB with the same rows; what was asked once is remembered."""

    def __init__(self):
        self.db = duckdb.connect(config={"threads": 1})
        self.db.execute("SET TimeZone = 'UTC'")
        self.db.execute("CREATE SCHEMA other")
        self.known = {}
        self.lock = threading.Lock()
        for schema in SCHEMAS:
            schema = "main" if schema == "public" else schema
            columns = ", ".join(f"{name} {of}" for name, of in COLUMNS.items())
            self.db.execute(f"CREATE TABLE {schema}.events ({columns})")

    def insert(self, schema, rows):
        schema = "main" if schema == "public" else schema
        places = ", ".join("?" for _ in COLUMNS)
        self.db.executemany(f"INSERT INTO {schema}.events VALUES ({places})", rows)
        self.known.clear()

    def answer(self, question, schema, nulls):
        sql = question.with_literals(question.oracle.replace("{nulls}", nulls))
        key = (schema, sql)
        with self.lock:
            if key not in self.known:
                self.db.execute(f"SET schema = '{'main' if schema == 'public' else schema}'")
                self.known[key] = plain(self.db.execute(sql).fetchall(), question.ordered)
            return self.known[key]


SWITCHES = ["short_path", "plan_templates", "result_reuse"]


class Session:
    """A connection with settings of its own."""

    def __init__(self, options, number, oracle, run):
        self.rng = random.Random(f"{options.seed} {number}")
        self.oracle, self.run = oracle, run
        self.began = self.rng.choice(SCHEMAS)
        self.schema, self.nulls = self.began, "LAST"
        self.connection = psycopg.connect(
            options.stoa, autocommit=True, options=f"-c search_path={self.began}", prepare_threshold=None
        )

    def change(self):
        match self.rng.randrange(7):
            case 0 | 1:
                self.schema = self.rng.choice(SCHEMAS)
                self.do(f"SET search_path = {self.schema}")
            case 2:
                self.nulls = self.rng.choice(["FIRST", "LAST"])
                self.do(f"SET {NULLS} = '{'nulls_first' if self.nulls == 'FIRST' else 'nulls_last'}'")
            case 3:
                self.do(self.rng.choice(["RESET ALL", "DISCARD ALL"]))
                self.schema, self.nulls = self.began, "LAST"
            case 4:
                self.do(f"SET TIME ZONE '{self.rng.choice(['UTC', 'Asia/Kolkata', 'Etc/GMT+8'])}'")
            case 5:
                self.do(f"SET datafusion.execution.batch_size = {self.rng.choice([8192, 7])}")
            case _:
                self.do(f"SET {self.rng.choice(SWITCHES)} = {self.rng.choice(['on', 'on', 'off'])}")

    def do(self, sql):
        self.connection.execute(sql)

    def ask(self):
        rng = self.rng
        shape = rng.randrange(80)
        # Most questions are asked again with the same values, by this session or another: answers are kept.
        again = random.Random(f"{shape} {rng.randrange(50)}")
        question = Question(shape, again if rng.random() < 0.8 else rng)
        expected = self.oracle.answer(question, self.schema, self.nulls)
        way = rng.choice(["literals", "parameters", "prepared"])
        if way == "literals":
            sql, values = question.with_literals(question.sql).replace("%", "%%"), None
            sql = sql.replace("%%", "%")
        else:
            sql, values = question.sql.replace("?", "%s"), question.values
        found = self.connection.execute(sql, values, prepare=way == "prepared").fetchall()
        found = plain(found, question.ordered)
        if found != expected:
            state = f"{way}, {self.schema}, nulls {self.nulls}"
            self.run.differs(f"{sql}\n  {values} ({state})\n  stoa:   {found}\n  duckdb: {expected}")

    def work(self):
        while self.run.take():
            if self.rng.randrange(40) == 0:
                self.change()
            self.ask()


class Run:
    """How many statements are left, and what differed."""

    def __init__(self, statements):
        self.left, self.asked, self.differing, self.lock = statements, 0, [], threading.Lock()

    def take(self):
        with self.lock:
            if self.left == 0 or len(self.differing) > 10:
                return False
            self.left -= 1
            self.asked += 1
            return True

    def differs(self, text):
        with self.lock:
            self.differing.append(text)


def fill(connection, oracle, rng, schema, count):
    rows = [row(rng) for _ in range(count)]
    lines = ("(" + ", ".join("NULL" if v is None else literal(v) for v in one) + ")" for one in rows)
    connection.execute(f"INSERT INTO {schema}.events VALUES {', '.join(lines)}")
    oracle.insert(schema, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stoa", required=True, help="connection string")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("STOA_DUCKDB_SEED", "12")))
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--statements", type=int, default=int(os.environ.get("STOA_DUCKDB_STATEMENTS", "1500")))
    options = parser.parse_args()
    rng, oracle = random.Random(options.seed), Oracle()
    failures, asked = 0, 0
    with psycopg.connect(options.stoa, autocommit=True) as root:
        root.execute("CREATE SCHEMA IF NOT EXISTS other")
        for schema in SCHEMAS:
            columns = ", ".join(f"{name} {of}" for name, of in COLUMNS.items())
            root.execute(f"CREATE TABLE {schema}.events ({columns})")
        # Rows come between rounds, some of them into files: what is kept must not outlive them.
        sessions = None
        for turn in range(4):
            for schema in SCHEMAS:
                fill(root, oracle, rng, schema, 200)
                if turn % 2 == 0:
                    root.execute(f"FLUSH TABLE {schema}.events")
            run = Run(options.statements // 4)
            sessions = sessions or [Session(options, n, oracle, run) for n in range(options.sessions)]
            errors = []

            def work(session, errors=errors):
                try:
                    session.work()
                except Exception as error:
                    errors.append(f"{type(error).__name__}: {error}")

            for session in sessions:
                session.run = run
            threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            asked += run.asked
            failures += len(run.differing) + len(errors)
            print("\n".join([*run.differing, *errors][:10]), end="", flush=True)
            if failures:
                break
        for session in sessions:
            session.connection.close()
        for schema in SCHEMAS:
            root.execute(f"DROP TABLE {schema}.events")
    print(f"{asked} statements of {options.sessions} sessions, {failures} of them with another answer")
    print(f"{1 if not failures else 0} passed, {1 if failures else 0} failed, 0 skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
