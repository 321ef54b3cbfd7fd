"""Histories of a table, drawn from a seed: rows come, change and go, columns too, on both sides; after each
statement the table is compared.

On Stoa's side rows are brought into files at random moments, and files merged, so that changes meet rows of the log,
of files, of files with deletes and of files from before a change of columns.
"""

import random

from compare import AGREE, compare
from expressions import NAMES, Expressions
from sides import Refusal

STEPS = 30
# Of so many expressions that the run draws otherwise, one step.
SHARE = 12

KINDS = ["int", "big", "dec", "f8", "bool", "text", "date", "ts"]
# What can be assigned to a column of a kind without a cast.
ASSIGNED = {
    "int": ["int", "int", "dec", "f8"], "big": ["big", "big", "int", "dec", "f8"], "dec": ["dec", "dec", "int", "big", "f8"],
    "f8": ["f8", "f8", "int", "dec"], "bool": ["bool"], "text": ["text", "text", "int", "bool", "date"],
    "date": ["date", "date", "ts"], "ts": ["ts", "ts", "date"],
}  # fmt: skip
SOURCE = [("k", "big"), ("n", "int"), ("p", "dec"), ("s", "text"), ("day", "date"), ("b", "bool")]
PARTITIONS = ["", "", "", " PARTITIONED BY (month(day))", " PARTITIONED BY (bucket(3, k))", " PARTITIONED BY (b)", " PARTITIONED BY (truncate(1, s))"]
# Columns that may partition the table: they stay.
PARTITIONING = ("k", "day", "b", "s")
# Few rows are many row groups, and files are small.
PROPERTIES = " TBLPROPERTIES ('stoa.orc.row-index-stride' = '100', 'stoa.compaction.min-input-files' = '2')"


class History:
    """A table `history`, rows to change it with in `source`, and what was done so far."""

    def __init__(self, oracle, rng):
        self.oracle = oracle
        self.rng = rng
        self.done = []
        self.columns = [("k", "big"), ("n", "int"), ("l", "big"), ("p", "dec"), ("d", "f8"), ("b", "bool"), ("s", "text"), ("day", "date"), ("at", "ts")]
        self.is_keyed = rng.random() < 0.5
        self.names = 0
        # The tables differ for a reason that is known.
        self.is_over = False

    def begin(self):
        for table in ("history", "source"):
            self.both(f"DROP TABLE IF EXISTS {table}")
        declared = ", ".join(f"{name} {NAMES[kind]}" for name, kind in self.columns)
        key = ", PRIMARY KEY (k)" if self.is_keyed else ""
        create = f"CREATE TABLE history ({declared}{key})"
        self.both(create + self.rng.choice(PARTITIONS) + PROPERTIES, create)
        self.both(f"CREATE TABLE source ({', '.join(f'{name} {NAMES[kind]}' for name, kind in SOURCE)})")
        # No key twice: which of two rows changes a third is anybody's guess.
        rows = [self.values(SOURCE, key) for key in self.rng.sample(range(1, 40), 14)]
        self.both(f"INSERT INTO source VALUES {', '.join(rows)}")
        rows = [self.values(self.columns, key) for key in range(1, 30)]
        self.both(f"INSERT INTO history VALUES {', '.join(rows)}")

    def both(self, stoa, postgres=None):
        self.done.append(stoa)
        self.oracle.stoa.must(stoa)
        self.oracle.postgres.must(postgres or stoa)

    # Parts of statements.

    def expressions(self, *scopes):
        return Expressions(self.rng, [(f"{alias}.{name}", kind) for alias, columns in scopes for name, kind in columns])

    def literal(self, kind):
        return "NULL" if self.rng.randrange(6) == 0 else str(Expressions(self.rng, []).literal(kind))

    def values(self, columns, key):
        return "(" + ", ".join(str(key) if name == "k" else self.literal(kind) for name, kind in columns) + ")"

    def some_columns(self, most=3):
        others = [column for column in self.columns if column[0] != "k"]
        return self.rng.sample(others, self.rng.randint(1, min(most, len(others))))

    def assignments(self, made):
        """`column = expression`, …, or rows of them"""
        columns = self.some_columns()
        values = [self.assigned(made, kind) for _, kind in columns]
        if self.rng.randrange(5) == 0:
            row = self.rng.choice(["", "ROW"]) if len(columns) > 1 else "ROW"
            return f"({', '.join(name for name, _ in columns)}) = {row}({', '.join(map(str, values))})"
        return ", ".join(f"{name} = {value}" for (name, _), value in zip(columns, values))

    def assigned(self, made, kind):
        if self.rng.randrange(8) == 0:
            return self.rng.choice(["NULL", "DEFAULT"])
        return made.make(self.rng.choice(ASSIGNED[kind]), self.rng.randint(0, 2))

    def condition(self, made, alias):
        """True for some rows."""
        part = f"{alias}.k % {self.rng.choice([2, 3, 5])} = {self.rng.randint(0, 1)}"
        return self.rng.choice([part, f"{part} AND {made.condition(1)}", str(made.condition(2)), f"{part} OR {made.condition(1)}"])

    def returning(self):
        made = self.expressions(("h", self.columns))
        return self.rng.choice(["", "", " RETURNING h.*", f" RETURNING h.k, {made.make(self.rng.choice(KINDS), 1)} AS x"])

    # Statements.

    def insert_values(self):
        columns = [("k", "big"), *self.some_columns(9)]
        keys = self.rng.sample(range(1, 60), self.rng.randint(1, 6))
        rows = ", ".join(self.values(columns, key) for key in keys)
        text = f"INSERT INTO history AS h ({', '.join(name for name, _ in columns)}) VALUES {rows}"
        return text + self.conflict() + self.returning()

    def conflict(self):
        if not self.is_keyed:
            return ""
        if self.rng.randrange(3) == 0:
            return " ON CONFLICT DO NOTHING"
        made = self.expressions(("h", self.columns), ("excluded", self.columns))
        where = f" WHERE {made.condition(1)}" if self.rng.randrange(3) == 0 else ""
        return f" ON CONFLICT (k) DO UPDATE SET {self.assignments(made)}{where}"

    def insert_select(self):
        columns = self.some_columns(9)
        made = self.expressions(("x", SOURCE))
        values = ", ".join(str(self.assigned(made, kind)).replace("DEFAULT", "NULL") for _, kind in columns)
        names = ", ".join(name for name, _ in columns)
        by = self.rng.choice([0, 0, 7, 30])
        text = f"INSERT INTO history AS h (k, {names}) SELECT x.k + {by}, {values} FROM source AS x WHERE {self.condition(made, 'x')}"
        return text + self.conflict()

    def insert_first_columns(self):
        """The first columns only, which the statement does not name."""
        columns = self.columns[1 : self.rng.randint(1, len(self.columns))]
        made = self.expressions(("x", SOURCE))
        values = [str(self.assigned(made, kind)).replace("DEFAULT", "NULL") for _, kind in columns]
        values = "".join(f", CAST({value} AS {NAMES[kind]})" for value, (_, kind) in zip(values, columns))
        query = f"SELECT x.k + {self.rng.choice([0, 7, 30])}{values} FROM source AS x WHERE {self.condition(made, 'x')}"
        if self.rng.randrange(3) == 0:
            names = ", ".join(f"v{at}" for at in range(len(columns) + 1))
            query = f"SELECT * FROM ({query}) AS v ({names})"
        return f"INSERT INTO history AS h {query}" + self.conflict()

    def update_of_rows(self):
        """Several columns from one row of a query."""
        made = self.expressions(("h", self.columns))
        of = self.expressions(("h", self.columns), ("x", SOURCE))
        columns = [(name, kind) for name, kind in self.some_columns() if kind != "bool"]
        if not columns:
            return self.update()
        values = ", ".join(f"{self.rng.choice(['min', 'max'])}({of.make(kind, 1)})" for _, kind in columns)
        names = ", ".join(name for name, _ in columns)
        row = f"(SELECT {values} FROM source AS x WHERE x.k = h.k)"
        return f"UPDATE history AS h SET ({names}) = {row} WHERE {self.condition(made, 'h')}{self.returning()}"

    def update(self):
        made = self.expressions(("h", self.columns))
        return f"UPDATE history AS h SET {self.assignments(made)} WHERE {self.condition(made, 'h')}{self.returning()}"

    def update_from(self):
        made = self.expressions(("h", self.columns), ("x", SOURCE))
        return f"UPDATE history AS h SET {self.assignments(made)} FROM source AS x WHERE h.k = x.k AND ({self.condition(made, 'h')}){self.returning()}"

    def delete(self):
        made = self.expressions(("h", self.columns))
        rows = f"h.k % {self.rng.choice([3, 4, 7])} = {self.rng.randint(0, 2)}"
        return f"DELETE FROM history AS h WHERE {rows} AND {made.condition(2)}{self.returning()}"

    def delete_using(self):
        made = self.expressions(("h", self.columns), ("x", SOURCE))
        return f"DELETE FROM history AS h USING source AS x WHERE h.k = x.k AND h.k % 3 = 0 AND {made.condition(1)}{self.returning()}"

    def delete_in(self):
        made = self.expressions(("x", SOURCE))
        word = self.rng.choice(["IN", "IN", "NOT IN"])
        return f"DELETE FROM history AS h WHERE h.k % 4 = 1 AND h.k {word} (SELECT x.k FROM source AS x WHERE {self.condition(made, 'x')})"

    def update_with_subquery(self):
        made = self.expressions(("h", self.columns))
        of = self.expressions(("h", self.columns), ("x", SOURCE))
        name, kind = self.rng.choice(self.some_columns())
        value, agg = of.make(kind if kind != "bool" else "int", 1), self.rng.choice(["min", "max"])
        value = f"(SELECT {agg}({value}) FROM source AS x WHERE x.k = h.k)" + (" > 0" if kind == "bool" else "")
        return f"UPDATE history AS h SET {name} = {value} WHERE {self.condition(made, 'h')}{self.returning()}"

    def delete_where_exists(self):
        made = self.expressions(("h", self.columns), ("x", SOURCE))
        word = self.rng.choice(["EXISTS", "EXISTS", "NOT EXISTS"])
        return f"DELETE FROM history AS h WHERE h.k % 3 = 2 AND {word} (SELECT 1 FROM source AS x WHERE x.k = h.k AND {made.condition(1)}){self.returning()}"

    def merge_source(self):
        """Rows to merge, no key twice."""
        if self.rng.randrange(3):
            return "source", self.expressions(("x", SOURCE))
        own = self.expressions(("y", SOURCE))
        columns = ", ".join("y.k" if name == "k" else f"{own.make(kind, 1)} AS {name}" for name, kind in SOURCE)
        return f"(SELECT {columns} FROM source AS y WHERE {self.condition(own, 'y')})", self.expressions(("x", SOURCE))

    def merge(self):
        source, own = self.merge_source()
        both = self.expressions(("h", self.columns), ("x", SOURCE))
        on = self.rng.choice(["", "", f" AND {both.condition(1)}"]) if not self.is_keyed else ""
        whens = []
        if self.rng.randrange(3):
            whens.append(f" WHEN MATCHED AND {both.condition(1)} THEN UPDATE SET {self.assignments(both)}")
        if self.rng.randrange(3) == 0:
            whens.append(f" WHEN MATCHED AND h.k % 2 = 0 AND {both.condition(1)} THEN DELETE")
        if self.rng.randrange(3) or not whens:
            columns = self.some_columns(5)
            values = ", ".join(str(self.assigned(own, kind)) for _, kind in columns)
            names = ", ".join(name for name, _ in columns)
            whens.append(f" WHEN NOT MATCHED AND {own.condition(1)} THEN INSERT (k, {names}) VALUES (x.k, {values})")
        for words, made in ((" WHEN MATCHED", both), (" WHEN NOT MATCHED", own)):
            if self.rng.randrange(4) == 0:
                idle = f"{words} AND {made.condition(1)} THEN DO NOTHING"
                whens.insert(self.rng.randint(0, len(whens)), idle)
        return f"MERGE INTO history AS h USING {source} AS x ON h.k = x.k{on}{''.join(whens)}"

    def truncate(self):
        return self.rng.choice(["TRUNCATE TABLE history", "DELETE FROM history"])

    def add_column(self):
        self.names += 1
        kind = self.rng.choice(KINDS)
        # A name that another column had before must not bring its values back.
        name = self.rng.choice(["c", f"c{self.names}"])
        if any(name == known for known, _ in self.columns):
            name = f"c{self.names}"
        self.columns.append((name, kind))
        return f"ALTER TABLE history ADD COLUMN {name} {NAMES[kind]}"

    def drop_column(self):
        if len(self.columns) <= 6:
            return self.update()
        dropped = self.rng.choice([column for column in self.columns if column[0] not in PARTITIONING])
        self.columns.remove(dropped)
        return f"ALTER TABLE history DROP COLUMN {dropped[0]}"

    def rename_column(self):
        at = self.rng.choice([at for at, (name, _) in enumerate(self.columns) if name not in PARTITIONING])
        name, kind = self.columns[at]
        self.names += 1
        self.columns[at] = (f"{kind}{self.names}", kind)
        return f"ALTER TABLE history RENAME COLUMN {name} TO {kind}{self.names}"

    def widen(self):
        narrow = [at for at, (_, kind) in enumerate(self.columns) if kind == "int"]
        if not narrow:
            return self.update()
        at = self.rng.choice(narrow)
        self.columns[at] = (self.columns[at][0], "big")
        return f"ALTER TABLE history ALTER COLUMN {self.columns[at][0]} TYPE bigint"

    def draw(self):
        rng = self.rng
        draw = rng.choices(
            [self.insert_values, self.insert_select, self.insert_first_columns, self.update, self.update_of_rows, self.update_from, self.delete, self.delete_using, self.delete_in,
             self.update_with_subquery, self.delete_where_exists, self.merge, self.truncate, self.add_column, self.drop_column, self.rename_column, self.widen],
            [5, 2, 1.5, 4, 1.5, 3, 4, 2, 2, 2, 2, 5, 0.2, 0.7, 0.5, 0.5, 0.4],
        )[0]  # fmt: skip
        return draw()

    def checks(self):
        """What is asked of the table: all of it, and something that files' statistics may answer."""
        made = self.expressions(("h", self.columns))
        name, kind = self.rng.choice(self.columns)
        least = "" if kind == "bool" else f", min(h.{name}), max(h.{name})"
        yield "SELECT * FROM history"
        yield f"SELECT count(*), count(h.{name}){least} FROM history AS h"
        yield f"SELECT h.{name}, count(*) FROM history AS h WHERE {self.condition(made, 'h')} GROUP BY 1"

    # Running it.

    def block(self):
        """The statements of a transaction, which the first that is refused ends."""
        rng = self.rng
        change = rng.choice([self.update, self.update_from, self.delete, self.merge])
        statements = [change()] if self.is_keyed or rng.randrange(2) else []
        can_read = not statements
        if not self.is_keyed:
            for _ in range(rng.randint(1, 3)):
                undone = rng.randrange(4) == 0
                statements += ["SAVEPOINT before"] if undone else []
                statements.append(rng.choice([self.insert_values, self.insert_select])())
                statements += ["SELECT * FROM history"] if can_read else []
                statements += ["ROLLBACK TO before"] if undone else []
        return ["BEGIN", *statements, rng.choice(["COMMIT", "COMMIT", "ROLLBACK"])]

    def step_block(self):
        """A transaction on both sides; what differs, or None."""
        postgres, stoa = self.oracle.postgres, self.oracle.stoa
        for sql in self.block():
            self.done.append(sql)
            expected, actual = postgres.ask(sql), stoa.ask(sql)
            verdict = compare(expected, actual)
            if verdict.word != "differ":
                self.oracle.note(verdict, sql)
            if verdict != AGREE or isinstance(expected, Refusal):
                for side in (postgres, stoa):
                    side.must("ROLLBACK")
                if is_planned(postgres, sql, expected, actual):
                    return None
                return (verdict, sql) if verdict.word == "differ" else self.check(sql)
        return self.check(sql)

    def check(self, sql):
        """What differs in the table, or None."""
        for check in self.checks():
            verdict = self.oracle.verdict(check)
            if verdict.word == "differ":
                return verdict, f"{check};  after  {sql}"
            self.oracle.note(verdict, check)
        return None

    def step(self):
        """One statement on both sides; what differs, or None."""
        if self.rng.randrange(8) == 0:
            return self.step_block()
        columns = list(self.columns)
        sql = self.draw()
        postgres, stoa = self.oracle.postgres, self.oracle.stoa
        self.done.append(sql)
        postgres.must("BEGIN")
        expected = postgres.ask(sql)
        actual = stoa.in_turn(sql)
        if isinstance(expected, Refusal):
            postgres.must("ROLLBACK")
        if is_planned(postgres, sql, expected, actual):
            self.is_over = actual.changed != 0
            self.columns = columns
            return None
        verdict = compare(expected, actual)
        if verdict == AGREE and not isinstance(expected, Refusal) and expected.changed != actual.changed:
            verdict = type(verdict)("differ", "count", f"{expected.changed} rows expected, {actual.changed} changed")
        is_refused = isinstance(actual, Refusal)
        postgres.must("ROLLBACK" if is_refused else "COMMIT")
        if is_refused or isinstance(expected, Refusal):
            self.columns = columns
        if verdict.word == "differ":
            return verdict, sql
        self.oracle.note(verdict, sql)
        return self.check(sql)

    def tend(self):
        """Work on files, of which PostgreSQL has none."""
        word = self.rng.choices(["", "FLUSH TABLE history", "COMPACT TABLE history", "COMPACT TABLE history FULL"], [5, 3, 1, 1])[0]
        if word:
            self.done.append(word)
            self.oracle.stoa.must(word)


def is_planned(postgres, sql, expected, actual):
    """Whether PostgreSQL refuses a constant, or an aggregate of another query's columns, while it plans: then it does not
    explain the statement either. Stoa computes what a row needs. The transaction that was refused must have ended."""
    if not isinstance(expected, Refusal) or isinstance(actual, Refusal):
        return False
    explained = postgres.ask(f"EXPLAIN {sql}")
    return isinstance(explained, Refusal) and explained.sqlstate == expected.sqlstate


def run(oracle, seed, expressions):
    """About one step for `SHARE` expressions; findings are the oracle's. Each statement is another daemon's."""
    oracle.takes_turns = True
    for number in range(max(2, expressions // SHARE // STEPS)):
        history = History(oracle, random.Random(f"{seed}/history/{number}"))
        history.begin()
        for _ in range(STEPS):
            history.tend()
            if history.is_over:
                break
            if (found := history.step()) is not None:
                verdict, sql = found
                # A decimal that became a text, with another number of zeros.
                if verdict.how == "value text zeros":
                    break
                oracle.counts["differ"] += 1
                told = f"history {number} of seed {seed}:\n    " + ";\n    ".join(history.done)
                oracle.findings.setdefault((f"history {verdict.how}", sql), (verdict, sql, told))
                # What follows would differ for the same reason.
                break
    oracle.takes_turns = False
