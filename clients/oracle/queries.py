"""Whole statements: lists of expressions, subqueries, set operations, joins, aggregates, windows.

A `Statement` knows whether its rows have an order, and how it is asked again with other literals: repeated
statements are answered from templates and on the short path of reports, and must be right there, too.
"""

from dataclasses import dataclass

from expressions import COMPARISONS, KINDS, Expressions
from tables import TABLES
from tree import Items, Node

# Expressions in one SELECT. More make a statement cheaper, and harder to read when it fails.
TOGETHER = 6


@dataclass
class Statement:
    """A statement to compare."""

    tree: Node
    expressions: int = 1
    ordered: bool = False
    # How often it is asked, with other literals each time.
    turns: int = 1
    form: str = ""


class Queries:
    """Draws statements."""

    def __init__(self, rng):
        self.rng = rng
        self.forms = [
            (34, self.expression_list), (10, self.conditions), (9, self.aggregates), (8, self.report),
            (6, self.set_operation), (6, self.joins), (4, self.same_names), (4, self.chains), (6, self.windows), (4, self.grouping_sets),
            (5, self.nested), (3, self.ordered), (3, self.select1), (3, self.select4), (3, self.random_aggregates),
            (3, self.constants), (4, self.values_list), (3, self.types), (2, self.series),
        ]  # fmt: skip

    def draw(self):
        weights = [weight for weight, _ in self.forms]
        form = self.rng.choices([form for _, form in self.forms], weights)[0]
        statement = form()
        statement.form = form.__name__
        return statement

    # Scopes and subqueries.

    def scope(self, table, alias=None):
        prefix = f"{alias}." if alias else ""
        return [(prefix + name, kind) for name, _, kind in TABLES[table]]

    def expressions(self, scope, risky=False, subqueries=True, deep=0):
        maker = Expressions(self.rng, scope, risky)
        if subqueries and deep < 2:
            maker.subquery = lambda form, kind: self.subquery(maker, form, kind, deep)
        return maker

    def subquery(self, outer, form, kind, deep):
        """A subquery as an expression: a scalar one, EXISTS, IN, ANY, ALL."""
        rng = self.rng
        table = rng.choice(["facts", "others", "others", "few", "nothing"])
        columns = [name for name, _, of in TABLES[table] if of == kind]
        if not columns:
            return None
        # Names without a qualifier mean the inner table's columns, whatever the outer one has.
        bare = rng.random() < 0.6
        alias = f"x{deep}"
        prefix = "" if bare else f"{alias}."
        inner = [(prefix + name, of) for name, _, of in TABLES[table]]
        correlated = rng.random() < 0.35
        qualified = [pair for pair in outer.scope if "." in pair[0]]
        maker = self.expressions(inner, deep=deep + 1, subqueries=rng.random() < 0.2)
        where = maker.make("bool", 1)
        if correlated and qualified:
            name, of = rng.choice(qualified)
            if mates := [column for column, other in inner if other == of]:
                op = rng.choice(["=", "=", "=", "<>", "<"])
                where = Node("bool", "(", where, rng.choice([" OR ", " AND "]), Node("bool", f"{rng.choice(mates)} {op} {name}"), ")")
        where = Node(None, " WHERE ", where, optional=True)
        source = table if bare else f"{table} {alias}"
        column = prefix + rng.choice(columns)
        if form == "scalar":
            # One row: an aggregate. min and max exist for what is ordered.
            if kind == "big" or (kind == "int" and rng.random() < 0.5):
                return Node("big" if kind == "big" else "int", f"(SELECT count(*){'' if kind == 'big' else '::int'} FROM {source}", where, ")")
            function = rng.choice(["min", "max"]) if kind != "bool" else rng.choice(["bool_and", "bool_or"])
            return Node(kind, f"(SELECT {function}({column}) FROM {source}", where, ")")
        shape = rng.randrange(5)
        if shape == 0:
            return Node("bool", rng.choice(["EXISTS ", "NOT EXISTS "]), f"(SELECT 1 FROM {source}", where, ")")
        left = outer.make(kind, 1)
        if shape in (1, 2):
            made = Node("bool", "(", left, rng.choice([" IN ", " NOT IN "]), f"(SELECT {column} FROM {source}", where, "))")
            if rng.random() < 0.2:
                return Node("bool", "(", made, rng.choice([" IS NULL)", " IS NOT TRUE)", " IS NOT NULL)"]))
            return made
        op, word = rng.choice(COMPARISONS), rng.choice(["ANY", "ALL", "SOME"])
        return Node("bool", "(", left, f" {op} {word} (SELECT {column} FROM {source}", where, "))")

    # Forms of statements.

    def expression_list(self):
        """Many expressions over the rows of one table."""
        rng = self.rng
        alias = "t" if rng.random() < 0.5 else None
        table = rng.choice(["facts", "facts", "others"])
        risky = rng.random() < 0.3
        maker = self.expressions(self.scope(table, alias), risky=risky)
        count = 2 if risky else TOGETHER
        items = Items([maker.make(rng.choice(KINDS), 3) for _ in range(count)])
        source = f"{table} {alias}" if alias else table
        return Statement(Node(None, "SELECT ", items, f" FROM {source}"), count)

    def constants(self):
        """Expressions without a table, which are computed while planning."""
        maker = self.expressions([], subqueries=False)
        items = Items([maker.make(self.rng.choice(KINDS), 3) for _ in range(TOGETHER)])
        return Statement(Node(None, "SELECT ", items), TOGETHER)

    def values_list(self):
        """VALUES whose columns hold what has one type in the end: numbers of all kinds, times, texts, NULL."""
        rng = self.rng
        maker = self.expressions([], subqueries=False)
        families = [["int", "big", "dec", "f8", "f4"], ["int", "dec"], ["f4", "dec"], ["date", "ts"], ["text"], ["bool"]]
        columns = rng.choices(families, k=rng.randint(1, 3))

        def value(kinds):
            kind = rng.choice(kinds)
            if rng.random() < 0.12:
                return Node(None, "NULL")
            if kind == "f4" or rng.random() < 0.6:
                return maker.literal(kind)
            return maker.make(kind, 1)

        rows = []
        for _ in range(rng.randint(2, 4)):
            parts = [part for kinds in columns for part in (", ", value(kinds))][1:]
            rows.append(Node(None, "(", *parts, ")"))
        # A literal in quotes has the type of the others; a column is not all NULL by chance.
        typed = {"int": "1::int", "big": "2::bigint", "dec": "2.5", "f8": "0.5::double precision", "f4": "0.5::real",
                 "text": "'t'::text", "bool": "true", "date": "DATE '2024-02-29'", "ts": "TIMESTAMP '2024-02-29 01:02:03'"}  # fmt: skip
        quoted = {"text": "'q'", "bool": "'f'", "date": "'2024-03-01'", "ts": "'2024-03-01 10:00'"}
        rows.append(Node(None, "(", ", ".join(typed[kinds[-1]] for kinds in columns), ")"))
        rows.append(Node(None, "(", ", ".join(quoted.get(kinds[-1], "'7'") for kinds in columns), ")"))
        rng.shuffle(rows)
        names = [f"v{n}" for n in range(len(columns))]
        shown = rng.choice([names, [f"pg_typeof({name})::text" for name in names] + names])
        values = Node(None, "VALUES ", Items(rows, least=1))
        shape = rng.randrange(3)
        if shape == 0:
            return Statement(values, len(columns))
        if shape == 1:
            return Statement(Node(None, f"WITH v({', '.join(names)}) AS (", values, f") SELECT {', '.join(shown)} FROM v"), len(columns))
        return Statement(Node(None, f"SELECT {', '.join(shown)} FROM (", values, f") AS v({', '.join(names)})"), len(columns))

    def types(self):
        """Names of the types of expressions, but of those that Stoa has under one name: whole numbers, texts."""
        rng = self.rng
        scope = self.scope("facts")
        maker = self.expressions(scope, subqueries=False)
        kinds = ["bool", "dec", "f8", "date", "ts"]
        items = Items([Node(None, "pg_typeof(", maker.make(rng.choice(kinds), 2), ")::text") for _ in range(3)])
        columns = Items([Node(None, f"pg_typeof({name})::text") for name, kind in rng.sample(scope, 2)])
        return Statement(Node(None, "SELECT ", items, ", ", columns, " FROM facts LIMIT 1"), 3)

    def series(self):
        """Rows of generate_series, whose bounds are more than literals."""
        rng = self.rng
        low, high = rng.randint(-3, 3), rng.randint(-2, 9)
        number = rng.choice(["{}", "{}::int", "{}::bigint", "(SELECT {})", "({} + 0)"])
        if rng.random() < 0.6:
            step = rng.choice(["", ", 1", ", 2", ", -1::int", ", (SELECT 3)"])
            call = f"generate_series({number.format(f'({low})')}, {number.format(f'({high})')}{step})"
            return Statement(Node(None, f"SELECT count(*), sum(n)::text FROM {call} AS s(n)"))
        step = rng.choice(["1 day", "12 hours", "1 month", "-1 day", "1 month 1 day"])
        low, high = (f"TIMESTAMP '2024-0{rng.randint(1, 3)}-{rng.choice([1, 15, 28, 29]):02}'" for _ in range(2))
        return Statement(Node(None, f"SELECT n::text FROM generate_series({low}, {high}, INTERVAL '{step}') AS s(n)"))

    def where(self, maker, parts=2, vary=False):
        """Conditions; those of repeated statements compare columns with literals."""
        rng = self.rng
        conditions = []
        for _ in range(rng.randint(1, parts)):
            if vary or rng.random() < 0.3:
                conditions.append(self.plain_condition(maker))
            else:
                conditions.append(maker.make("bool", 2))
        joined = Items(conditions, rng.choice([" AND ", " AND ", " OR "]))
        return Node(None, " WHERE ", joined, optional=True)

    def plain_condition(self, maker):
        rng = self.rng
        column, kind = rng.choice([pair for pair in maker.scope if pair[1] not in ("bool", "tstz", "f4")])

        def value():
            # A column is also compared with literals of another type than its own.
            of = rng.choice(["int", "dec"]) if kind in ("int", "big", "dec", "f8") and rng.random() < 0.4 else kind
            return maker.literal(of, vary=True)

        form = rng.randrange(6)
        if form == 0:
            return Node("bool", f"{column} BETWEEN ", value(), " AND ", value())
        if form == 1:
            word = rng.choice(["IN", "IN", "NOT IN"])
            return Node("bool", f"{column} {word} (", Items([value() for _ in range(rng.randint(1, 3))]), ")")
        if form == 2:
            return Node("bool", f"{column} IS {rng.choice(['', 'NOT '])}NULL")
        return Node("bool", f"{column} {rng.choice(COMPARISONS)} ", value())

    def conditions(self):
        """Rows that a condition chooses, several times with other literals."""
        rng = self.rng
        alias = "t" if rng.random() < 0.5 else None
        maker = self.expressions(self.scope("facts", alias))
        vary = rng.random() < 0.5
        columns = Items([Node(None, name) for name, _ in rng.sample(maker.scope, 3)])
        source = "facts t" if alias else "facts"
        tree = Node(None, "SELECT ", columns, f" FROM {source}", self.where(maker, 3, vary))
        return Statement(tree, 2, turns=4 if vary else 1)

    def report(self):
        """What reports look like: sums of a table by keys, with conditions on columns."""
        rng = self.rng
        maker = self.expressions(self.scope("facts"), subqueries=False)
        keys = rng.sample(["i", "j", "s", "day", "p", "l", "b"], rng.randint(0, 2))
        sums = rng.sample(["count(*)", "count(i)", "sum(i)", "sum(p)", "min(day)", "max(p)", "count(s)", "min(l)", "sum(d)", "max(i)", "min(s)", "max(at)"], 3)
        conditions = Items([self.plain_condition(maker) for _ in range(rng.randint(1, 3))], " AND ")
        by = Node(None, " GROUP BY ", ", ".join(keys)) if keys else ""
        columns = Items([Node(None, name) for name in keys + sums])
        tree = Node(None, "SELECT ", columns, " FROM facts WHERE ", conditions, by)
        return Statement(tree, 3, turns=4)

    def aggregate(self, maker):
        rng = self.rng
        form = rng.randrange(16)
        make = maker.make
        only = Node(None, " FILTER (WHERE ", make("bool", 1), ")", optional=True) if rng.random() < 0.2 else ""
        if form == 0:
            return Node(None, "count(*)", only)
        if form == 1:
            return Node(None, "count(", make(rng.choice(KINDS), 2), ")", only)
        if form == 2:
            return Node(None, "count(DISTINCT ", make(rng.choice(["int", "text", "dec", "date", "span", "time"]), 1), ")", only)
        if form in (3, 4):
            return Node(None, "sum(", make(rng.choice(["int", "dec", "f8", "span"]), 2), ")", only)
        if form == 5:
            return Node(None, "avg(", make(rng.choice(["f8", "f8", "dec", "int"]), 1), ")", only)
        if form in (6, 7):
            return Node(None, f"{rng.choice(['min', 'max'])}(", make(rng.choice(["int", "dec", "f8", "text", "date", "ts", "big", "span", "time"]), 2), ")", only)
        if form == 8:
            return Node(None, f"{rng.choice(['bool_and', 'bool_or', 'every'])}(", make("bool", 1), ")", only)
        if form == 9:
            return Node(None, "string_agg(", make("text", 1), ", ',' ORDER BY id)", only)
        if form == 10:
            return Node(None, f"{rng.choice(['stddev', 'variance', 'stddev_pop', 'var_pop', 'stddev_samp'])}(", make("f8", 0), ")", only)
        if form == 11:
            return Node(None, "array_agg(", make("int", 1), " ORDER BY id)", only)
        if form == 12:
            return Node(None, "sum(DISTINCT ", make("int", 1), ")", only)
        if form in (13, 14):
            call, kinds = rng.choice([
                ("percentile_cont", ["int", "dec", "f8", "big"]),
                ("percentile_disc", ["int", "text", "date", "dec", "ts"]),
                ("mode", ["int", "text", "date", "bool"]),
            ])  # fmt: skip
            share = "" if call == "mode" else rng.choice(["0", "0.1", "0.123456789", "0.25", "0.5", "0.95", "1"])
            order = rng.choice(["", " DESC"])
            return Node(None, f"{call}({share}) WITHIN GROUP (ORDER BY ", make(rng.choice(kinds), 1), order, ")", only)
        return Node(None, "(sum(", make("int", 0), ") ", rng.choice("+-*"), " count(*))")

    def aggregates(self):
        rng = self.rng
        maker = self.expressions(self.scope("facts"), subqueries=rng.random() < 0.3)
        keys = [maker.make(rng.choice(["int", "text", "date", "bool", "dec"]), rng.randint(0, 1)) for _ in range(rng.randint(0, 2))]
        sums = [self.aggregate(maker) for _ in range(3)]
        where = self.where(maker, 1) if rng.random() < 0.4 else ""
        by = having = ""
        if keys:
            by = " GROUP BY " + ", ".join(str(n) for n in range(1, len(keys) + 1))
            if rng.random() < 0.3:
                having = Node(None, " HAVING ", self.aggregate_condition(maker), optional=True)
        columns = Items(keys + sums, least=max(1, len(keys)))
        return Statement(Node(None, "SELECT ", columns, " FROM facts", where, by, having), 4)

    def aggregate_condition(self, maker):
        rng = self.rng
        return rng.choice([
            Node(None, "count(*) > ", str(rng.randint(0, 4))),
            Node(None, "sum(", maker.make("int", 1), ") ", rng.choice(COMPARISONS), " 3"),
            Node(None, "min(", maker.make("text", 0), ") IS NOT NULL"),
            Node(None, "max(", maker.make("dec", 0), ") > 1.5 OR count(i) = 1"),
        ])  # fmt: skip

    def grouping_sets(self):
        rng = self.rng
        maker = self.expressions(self.scope("facts"), subqueries=False)
        one, other = rng.sample(["i", "j", "b", "s"], 2)
        sets = rng.choice([f"ROLLUP ({one}, {other})", f"CUBE ({one}, {other})", f"GROUPING SETS (({one}), ({other}), ())", f"{one}, ROLLUP ({other})"])
        grouping = rng.choice(["", f", grouping({one})", f", grouping({one}, {other})"])
        columns = Items([Node(None, f"{one}, {other}{grouping}"), self.aggregate(maker), self.aggregate(maker)])
        return Statement(Node(None, "SELECT ", columns, " FROM facts GROUP BY ", sets), 2)

    def windows(self):
        rng = self.rng
        maker = self.expressions(self.scope("facts"), subqueries=False)

        def over():
            by = rng.choice(["", "PARTITION BY j ", "PARTITION BY b, j ", "PARTITION BY s "])
            order = rng.choice(["ORDER BY id", "ORDER BY i, id", "ORDER BY day DESC, id", "ORDER BY p DESC NULLS LAST, id", "ORDER BY s COLLATE \"C\", id" if False else "ORDER BY s, id"])
            return by, order

        items, named = [], ""
        for _ in range(3):
            by, order = over()
            form = rng.randrange(9)
            frame = ""
            if form <= 3:
                function = Node(None, rng.choice(["sum(", "count(", "min(", "max("]), maker.make(rng.choice(["int", "dec"]), 1), ")")
                frame = rng.choice(["", "", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW"])
                order = rng.choice([order, "ORDER BY i", ""]) if not frame or "RANGE" in frame else order
            elif form == 4:
                function = Node(None, rng.choice(["row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)"]))
            elif form == 5:
                function = Node(None, rng.choice(["rank()", "dense_rank()", "percent_rank()", "cume_dist()"]))
                order = rng.choice(["ORDER BY i", "ORDER BY j DESC", "ORDER BY p NULLS FIRST", "ORDER BY s"])
            elif form == 6:
                function = Node(None, rng.choice(["lag(", "lead("]), maker.make("int", 1), rng.choice([")", ", 2)", ", 1, 0)"]))
            elif form == 7:
                function = Node(None, rng.choice(["first_value(", "last_value("]), maker.make(rng.choice(["int", "text"]), 1), ")")
            else:
                function = Node(None, "nth_value(", maker.make("int", 0), ", 2)")
            style = rng.randrange(6)
            if style == 0 and not named and order:
                named = f" WINDOW w AS ({by.strip() or 'PARTITION BY j'})"
                items.append(Node(None, function, f" OVER (w {order}{frame})"))
            elif style == 1 and not named and not frame:
                named = f" WINDOW w AS ({by}{order})"
                items.append(Node(None, function, " OVER w"))
            else:
                items.append(Node(None, function, f" OVER ({by}{order}{frame})"))
        return Statement(Node(None, "SELECT id, ", Items(items), " FROM facts", named), 3)

    def set_operation(self):
        """UNION, INTERSECT and EXCEPT of lists of equal and of related types."""
        rng = self.rng
        kinds = [rng.choice(["int", "text", "dec", "date", "f8", "bool"]) for _ in range(rng.randint(1, 2))]

        def side(depth):
            if depth > 0 and rng.random() < 0.35:
                return Node(None, "(", operation(depth - 1), ")")
            table = rng.choice(["facts", "others", "others", "few"])
            maker = self.expressions(self.scope(table), subqueries=False)
            items = []
            for kind in kinds:
                of = rng.choice(["int", "dec"]) if kind == "dec" else kind
                items.append(maker.leaf(of) if rng.random() < 0.7 else maker.make(of, 1))
            where = self.where(maker, 1) if rng.random() < 0.3 else ""
            return Node(None, "SELECT ", Items(items, least=len(items)), f" FROM {table}", where)

        def operation(depth):
            word = rng.choice(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
            return Node(None, side(depth), f" {word} ", side(depth))

        tree = operation(1)
        if rng.random() < 0.2:
            tree = Node(None, "SELECT count(*) FROM (", tree, ") AS x")
        return Statement(tree, 2)

    def joins(self):
        rng = self.rng
        scope = self.scope("facts", "f") + self.scope("others", "o")
        maker = self.expressions(scope, subqueries=rng.random() < 0.3)
        kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "NATURAL", "USING", ","])
        key = rng.choice(["f.i = o.i", "f.id = o.id", "f.j = o.k", "f.s = o.s", "f.day = o.day", "f.p = o.p", "f.d = o.d", "f.l = o.i"])
        columns = Items([maker.make(rng.choice(KINDS), 1) for _ in range(3)])
        where = self.where(maker, 2) if rng.random() < 0.5 else ""
        if kind == "USING":
            style = rng.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
            columns = Items([Node(None, "i"), *columns.parts])
            source = Node(None, f"facts f {style} others o USING (i)")
        elif kind == "NATURAL":
            style = rng.choice(["JOIN", "LEFT JOIN"])
            source = Node(None, f"facts f NATURAL {style} (SELECT id, i AS oi FROM others) AS n")
            maker.scope = self.scope("facts", "f")
            columns = Items([maker.make(rng.choice(KINDS), 1) for _ in range(3)] + [Node(None, "n.oi")])
            where = ""
        elif kind in ("CROSS JOIN", ","):
            source = Node(None, f"facts f{'' if kind == ',' else ' '}{kind} others o")
            where = Node(None, f" WHERE {key} AND ", maker.make("bool", 1))
        else:
            more = Node(None, " AND ", maker.make("bool", 1), optional=True) if kind != "FULL JOIN" and rng.random() < 0.4 else ""
            source = Node(None, f"facts f {kind} others o ON {key}", more)
        if rng.random() < 0.3:
            columns = Items([Node(None, "count(*)"), Node(None, "sum(f.id)")])
        return Statement(Node(None, "SELECT ", columns, " FROM ", source, where), 3)

    def same_names(self):
        """Joins of tables whose columns have the same names: mostly plain columns, conditions on what is not shown."""
        rng = self.rng
        tables = rng.choice([[("facts", "f"), ("others", "o")], [("facts", "f"), ("others", "o"), ("others", "q")], [("others", "o"), ("others", "q"), ("facts", "f")]])
        source = [f"{tables[0][0]} {tables[0][1]}"]
        for (_, left), (table, alias) in zip(tables, tables[1:]):
            style = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL JOIN"])
            source.append(f" {style} {table} {alias} ON {left}.{rng.choice(['id', 'id', 'i'])} = {alias}.id")
        shared = [pair for pair in TABLES["facts"] if pair in TABLES["others"]] + [("id", "int", "int")]
        names = rng.sample(sorted({name for name, _, _ in shared}), 3)
        scope = [(f"{alias}.{name}", kind) for table, alias in tables for name, _, kind in TABLES[table] if name in names]
        maker = self.expressions(scope, subqueries=False)

        def item():
            name, kind = rng.choice(scope)
            return Node(kind, name) if rng.random() < 0.6 else maker.make(kind, 1)

        hidden = rng.choice(tables)[1]
        conditions = self.expressions([(name, kind) for name, kind in scope if name.startswith(f"{hidden}.")], subqueries=False)
        columns = Items([item() for _ in range(rng.randint(2, 4))])
        return Statement(Node(None, "SELECT ", columns, " FROM ", *source, " WHERE ", conditions.make("bool", 2)), 3)

    def chains(self):
        """Joins of two to four small relations with many NULLs, by keys that match NULLs and keys that do not."""
        rng = self.rng
        relations = [
            "(VALUES (1, 1), (NULL, 1), (1, NULL), (NULL, NULL), (2, 1))",
            "(SELECT i, nullif(id % 3, 0) FROM others WHERE id < 9)",
            "(SELECT i, i FROM few)",
            "(SELECT nullif(id % 4, 1), i FROM facts WHERE id < 12 UNION SELECT NULL, NULL)",
            "(SELECT nullif(i % 2, 0), j FROM facts INTERSECT SELECT nullif(i % 2, 0), nullif(id % 3, 0) FROM others)",
            "(SELECT nullif(id % 3, 0), nullif(id % 2, 0) FROM facts WHERE id < 9 EXCEPT ALL SELECT i, i FROM few)",
        ]
        aliases = ["a", "b", "c", "e"][: rng.choice([2, 3, 3, 3, 4])]

        def keys(left, right):
            sides = f"{rng.choice(left)}.{rng.choice('xy')}", f"{right}.{rng.choice('xy')}"
            return rng.choice([" = ", " IS NOT DISTINCT FROM "]).join(rng.sample(sides, 2))

        def conjunction(made):
            return " AND ".join(rng.sample(made, len(made)))

        source, conditions = f"{rng.choice(relations)} AS {aliases[0]}(x, y)", []
        for at, alias in enumerate(aliases[1:], 1):
            made = [keys(aliases[:at], alias) for _ in range(rng.choice([1, 2, 2]))]
            style = rng.choice([",", " JOIN", " JOIN", " JOIN", " LEFT JOIN", " FULL JOIN"])
            joined = f"{style} {rng.choice(relations)} AS {alias}(x, y)"
            if style == "," or rng.random() < 0.3:
                conditions += made if style in (",", " JOIN") else made[1:]
                made = [] if style in (",", " JOIN") else made[:1]
            if style == " FULL JOIN":
                made = [made[0].replace(" IS NOT DISTINCT FROM ", " = ")]
            if style == ",":
                source += joined.replace(",", " CROSS JOIN", 1)
            else:
                source += f"{joined} ON {conjunction(made) or 'true'}"
        maker = self.expressions([(f"{alias}.{name}", "int") for alias in aliases for name in "xy"], subqueries=rng.random() < 0.3)
        if rng.random() < 0.3:
            word = rng.choice(["EXISTS", "NOT EXISTS"])
            conditions.append(f"{word} (SELECT 1 FROM few WHERE {keys(aliases, 'few').replace('few.x', 'few.i').replace('few.y', 'few.i')})")
        where = f" WHERE {conjunction(conditions)}" if conditions else ""
        more = Node(None, " AND " if where else " WHERE ", maker.make("bool", 1), optional=True) if rng.random() < 0.4 else ""
        columns = ", ".join(f"{alias}.{name}" for alias in aliases for name in "xy")
        return Statement(Node(None, f"SELECT {columns} FROM {source}{where}", more), 3)

    def nested(self):
        """Subqueries in FROM, CTEs, LATERAL, VALUES, DISTINCT."""
        rng = self.rng
        maker = self.expressions(self.scope("facts"))
        one, other = rng.choice(KINDS), rng.choice(KINDS)
        inner = Node(None, "SELECT ", maker.make(one, 2), " AS m, ", maker.make(other, 2), " AS n, id FROM facts", self.where(maker, 1) if rng.random() < 0.4 else "")
        outer = self.expressions([("m", one), ("n", other), ("id", "int")], subqueries=False)
        items = Items([outer.make(rng.choice([one, other, "bool"]), 2), outer.make("bool", 1)])
        form = rng.randrange(5)
        if form == 0:
            tree = Node(None, "WITH x AS (", inner, ") SELECT ", items, " FROM x", self.where(outer, 1))
        elif form == 1:
            tree = Node(None, "SELECT DISTINCT ", items, " FROM (", inner, ") AS x")
        elif form == 2:
            tree = Node(None, "SELECT f.id, y.c FROM facts f, LATERAL (SELECT count(*) AS c FROM others o WHERE o.i = f.i AND ", self.expressions(self.scope("others", "o"), subqueries=False).make("bool", 1), ") AS y")
        elif form == 3:
            rows = [Node(None, "(", Items([outer.literal("int"), outer.literal("text"), outer.literal("dec")], least=3), ")") for _ in range(3)]
            values = self.expressions([("a", "int"), ("c", "text"), ("e", "dec")], subqueries=False)
            tree = Node(None, "SELECT ", Items([values.make("int", 2), values.make("text", 2), values.make("dec", 2)]), " FROM (VALUES ", Items(rows), ") AS v(a, c, e)")
        else:
            tree = Node(None, "SELECT ", items, " FROM (", inner, ") AS x", self.where(outer, 1))
        return Statement(tree, 4)

    def ordered(self):
        """Rows in an order, a part of them."""
        rng = self.rng
        maker = self.expressions(self.scope("facts"), subqueries=False)
        keys = Items([Node(None, maker.make(rng.choice(["int", "dec", "text", "date", "f8", "bool", "ts"]), 1), rng.choice(["", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST"])) for _ in range(2)])
        columns = Items([maker.make(rng.choice(KINDS), 1), Node(None, "id")], least=2)
        part = rng.choice(["", " LIMIT 7", " LIMIT 5 OFFSET 3", " OFFSET 50", " FETCH FIRST 4 ROWS ONLY"])
        if rng.random() < 0.3:
            key = rng.choice(["i", "j", "s", "b"])
            tree = Node(None, f"SELECT DISTINCT ON ({key}) {key}, ", columns, f" FROM facts ORDER BY {key}, ", keys, ", id")
        else:
            tree = Node(None, "SELECT ", columns, " FROM facts ORDER BY ", keys, ", id", part)
        return Statement(tree, 2, ordered=True)

    # Statements in the shape of sqlite's suites select1 to select5 and random/*.

    def select1(self):
        """select1, select2: t1 with CASE, abs, and subqueries that count and average."""
        rng = self.rng
        maker = self.expressions(self.scope("t1"), subqueries=False)
        items = [
            "a", "b", "c", "d", "e", "abs(a)", "abs(b - c)", "a + b * 2", "a + b * 2 + c * 3", "a - b", "(a + b + c + d + e) / 5",
            "CASE WHEN c > (SELECT avg(c) FROM t1) THEN a * 2 ELSE b * 10 END",
            "CASE a + 1 WHEN b THEN 111 WHEN c THEN 222 WHEN d THEN 333 WHEN e THEN 444 ELSE 555 END",
            "CASE WHEN a < b - 3 THEN 111 WHEN a <= b THEN 222 WHEN a < b + 3 THEN 333 ELSE 444 END",
            "(SELECT count(*) FROM t1 AS x WHERE x.b = t1.c)", "(SELECT max(x.a) FROM t1 AS x WHERE x.b = t1.b)",
        ]  # fmt: skip
        tests = [
            "d > e", "c > d", "b > c", "a > b", "(e > c OR e < d)", "(e > a AND e < b)", "a IS NULL", "c BETWEEN b - 2 AND d + 2",
            "d NOT BETWEEN 110 AND 150", "EXISTS (SELECT 1 FROM t1 AS x WHERE x.b < t1.b)",
            "(a > b - 2 AND a < b + 2)", "e + d BETWEEN a + b - 10 AND c + 130", "coalesce(a, b, c, d, e) <> 0",
        ]  # fmt: skip
        chosen = [Node(None, text) for text in rng.sample(items, rng.randint(2, 5))] + [maker.make("int", 2)]
        where = Items([Node(None, text) for text in rng.sample(tests, rng.randint(1, 3))], rng.choice([" AND ", " OR "]))
        order = Items([Node(None, str(n)) for n in range(1, len(chosen) + 1)])
        # Every column is a key of the order, so that it is complete.
        tree = Node(None, "SELECT ", ", ".join(map(str, chosen)), " FROM t1 WHERE ", where, " ORDER BY ", order)
        return Statement(tree, len(chosen), ordered=True)

    def select4(self):
        """select4: long unions, intersections and differences of columns with conditions."""
        rng = self.rng

        def part():
            column, other = rng.choice("abcde"), rng.choice("abcde")
            values = ", ".join(str(rng.randint(100, 255)) for _ in range(4))
            test = rng.choice([f"{other} IN ({values})", f"{column} > {rng.randint(120, 250)}", f"NOT ({other} IN ({values}))", f"{rng.randint(100, 250)} = {other}"])
            return Node(None, f"SELECT {column} FROM t1 WHERE ", Node("bool", test))

        words = [" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "]
        parts = [part()]
        for _ in range(rng.randint(1, 4)):
            parts.append(Node(None, rng.choice(words), part(), optional=True))
        return Statement(Node(None, Items(parts, ""), " ORDER BY 1"), len(parts), ordered=True)

    def random_aggregates(self):
        """random/aggregates, random/groupby, random/expr: signs and NOTs without end over tab0 to tab2."""
        rng = self.rng
        table = rng.choice(["tab0", "tab1", "tab2"])

        def sign():
            return rng.choice(["", "+ ", "- ", "- + ", "+ - "])

        def atom(columns, depth):
            form = rng.randrange(6)
            if form == 0 and depth:
                return Node("int", sign(), "coalesce(", atom(columns, depth - 1), ", ", atom(columns, depth - 1), ")")
            if form == 1 and depth:
                return Node("int", sign(), "CASE WHEN NOT ", atom(columns, depth - 1), rng.choice([" IS NULL", " > 1", " BETWEEN 1 AND 50"]), " THEN ", atom(columns, depth - 1), " ELSE ", atom(columns, 0), " END")
            if form == 2 and depth:
                return Node("int", sign(), "nullif(", atom(columns, depth - 1), ", ", atom(columns, depth - 1), ")")
            if form == 3 and depth:
                return Node("int", sign(), "( ", atom(columns, depth - 1), rng.choice([" + ", " - ", " * "]), atom(columns, depth - 1), " )")
            if columns and form > 3:
                return Node("int", sign(), rng.choice(columns))
            return Node("int", sign(), str(rng.randint(0, 99)))

        plain = [f"col{n}" for n in range(3)]
        if rng.random() < 0.5:
            inner = [f"{rng.choice(['COUNT', 'MIN', 'MAX', 'SUM'])}({rng.choice(['', 'ALL ', 'DISTINCT '])}{sign()}{rng.choice(plain)})" for _ in range(2)] + ["COUNT(*)"]
            items = Items([Node(None, atom(inner, 2), " AS r") for _ in range(2)])
            cor = rng.choice(["", " AS cor0", f" AS cor0 CROSS JOIN {rng.choice(['tab1', 'tab2'])} AS cor1"])
            if "CROSS" in cor:
                items = Items([Node(None, "COUNT(*) * ", atom([], 1), " AS r")])
            return Statement(Node(None, f"SELECT {rng.choice(['', 'ALL ', 'DISTINCT '])}", items, f" FROM {table}{cor}"), 2)
        items = Items([atom(plain, 2), atom(plain, 2)])
        test = Node("bool", "NOT ", atom(plain, 1), rng.choice([" <= ", " > ", " = "]), atom(plain, 1))
        return Statement(Node(None, f"SELECT {rng.choice(['', 'ALL ', 'DISTINCT '])}", items, f" FROM {table} WHERE ", test), 2)
