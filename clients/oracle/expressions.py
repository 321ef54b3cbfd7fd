"""Expressions of a known type over the columns in scope.

What is made is what PostgreSQL takes without asking for casts; what it refuses is refused for its values:
a division by zero, a number out of range. Such expressions are rare, and stand in a list of a SELECT only,
never in conditions, where the order in which rows are looked at would decide.
"""

from tree import Items, Node

KINDS = ["bool", "int", "big", "dec", "f8", "text", "date", "ts", "span", "time"]
NUMERIC = ["int", "big", "dec", "f8"]
NAMES = {
    "bool": "boolean", "int": "int", "big": "bigint", "dec": "numeric(14,4)", "f8": "double precision",
    "f4": "real", "text": "text", "date": "date", "ts": "timestamp", "tstz": "timestamp with time zone",
    "span": "interval", "time": "time",
}  # fmt: skip
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute"]
INTERVALS = [
    "1 day", "2 hours", "1 month", "1 year 2 months", "-3 days", "90 minutes", "1 month -1 day", "1 week", "24:00:00",
    "30 days", "1.5 s",
]  # fmt: skip
WORDS = ["a", "b", "ab", "abc", "", "x y", "z''z", "50%", "Ünï", "10"]


class Expressions:
    """Draws expressions. `scope` lists (text of a column, kind)."""

    def __init__(self, rng, scope, risky=False, subquery=None):
        self.rng = rng
        self.scope = scope
        # Whether values may be such that PostgreSQL refuses them.
        self.risky = risky
        # Makes subqueries: subquery(form, kind) is a node.
        self.subquery = subquery

    # What everything is made of.

    def make(self, kind, depth=2):
        """An expression of a kind."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.12:
            return self.leaf(kind)
        if rng.random() < 0.16:
            return self.common(kind, depth - 1)
        if self.subquery and rng.random() < 0.06 and kind in ("int", "big", "dec", "text", "date", "bool"):
            if (made := self.subquery("scalar", kind)) is not None:
                return made
        return getattr(self, kind)(depth - 1)

    def leaf(self, kind):
        columns = [name for name, of in self.scope if of == kind]
        if columns and self.rng.random() < 0.75:
            return Node(kind, self.rng.choice(columns))
        return self.literal(kind)

    def literal(self, kind, vary=False):
        made = Node(kind, draw_literal(kind, self.rng))
        if vary:
            made.redraw = lambda rng: Node(kind, draw_literal(kind, rng))
        return made

    def common(self, kind, depth):
        """What exists for all types."""
        form = self.rng.randrange(8)
        one, other = self.make(kind, depth), self.make(kind, depth)
        if form == 0:
            return Node(kind, "coalesce(", Items([one, other, self.leaf(kind)], least=1), ")")
        if form == 1:
            return Node(kind, "nullif(", one, ", ", other, ")")
        if form == 2 and kind != "bool":
            name = self.rng.choice(["greatest", "least"])
            return Node(kind, f"{name}(", Items([one, other, self.leaf(kind)]), ")")
        if form == 3:
            return Node(kind, "(", one, ")")
        if form == 4:
            # CASE value WHEN value
            of = self.rng.choice(KINDS)
            whens = [Node(None, " WHEN ", self.make(of, 0), " THEN ", self.make(kind, depth)) for _ in range(2)]
            rest = Node(None, " ELSE ", other, optional=True)
            return Node(kind, "CASE ", self.make(of, depth - 1), Items(whens, ""), rest, " END")
        whens = [Node(None, " WHEN ", self.condition(depth), " THEN ", self.make(kind, depth)) for _ in range(self.rng.randint(1, 3))]
        rest = Node(None, " ELSE ", other, optional=True)
        return Node(kind, "CASE", Items(whens, ""), rest, " END")

    def condition(self, depth):
        """Something true or false that no value makes an error."""
        risky, self.risky = self.risky, False
        made = self.make("bool", depth)
        self.risky = risky
        return made

    # One method for each kind.

    def bool(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(22)
        if form <= 5:
            return self.comparison(depth)
        if form == 6:
            return Node("bool", "(", make("bool", depth), rng.choice([" AND ", " OR "]), make("bool", depth), ")")
        if form == 7:
            return Node("bool", "(NOT ", make("bool", depth), ")")
        if form == 8:
            kind = rng.choice(KINDS)
            return Node("bool", "(", make(kind, depth), rng.choice([" IS NULL)", " IS NOT NULL)"]))
        if form == 9:
            test = rng.choice(["TRUE", "FALSE", "UNKNOWN", "NOT TRUE", "NOT FALSE", "NOT UNKNOWN"])
            return Node("bool", "(", make("bool", depth), f" IS {test})")
        if form in (10, 11):
            kind = rng.choice(KINDS)
            negated = rng.choice(["", "NOT "])
            return Node("bool", "(", make(kind, depth), f" IS {negated}DISTINCT FROM ", make(kind, depth), ")")
        if form in (12, 13):
            kind = rng.choice(["int", "dec", "f8", "text", "date", "ts", "big", "span", "time"])
            negated = rng.choice(["", "NOT "])
            symmetric = ""
            word = Node(None, symmetric, optional=True)
            return Node("bool", "(", make(kind, depth), f" {negated}BETWEEN ", word, make(kind, depth), " AND ", make(kind, depth), ")")
        if form in (14, 15):
            kind = rng.choice(["int", "dec", "f8", "text", "date", "big", "span", "time"])
            items = [make(kind, depth - 1) if rng.random() < 0.4 else self.literal(kind) for _ in range(rng.randint(1, 4))]
            if rng.random() < 0.15:
                items.append(Node(None, "NULL"))
            return Node("bool", "(", make(kind, depth), rng.choice([" IN (", " NOT IN ("]), Items(items), "))")
        if form in (16, 17):
            pattern = rng.choice(["a%", "%b%", "_b%", "%", "", "A%", "%c", "50\\%", "a\\_c", "ab_", "%ß%", "Ü%"])
            word = rng.choice(["LIKE", "NOT LIKE", "ILIKE", "LIKE", "NOT ILIKE"])
            return Node("bool", "(", make("text", depth), f" {word} '{pattern}')")
        if form == 18:
            pattern = rng.choice(["^a", "b$", "a.c", "[ab]+", "^$", "x|y", "\\d+"])
            return Node("bool", "(", make("text", depth), f" {rng.choice(['~', '!~', '~*'])} '{pattern}')")
        if form == 19:
            left, right = make("int", depth), make("text", depth)
            op = rng.choice(["=", "<>", "<", "<=", ">", ">="])
            return Node("bool", "((", left, ", ", right, f") {op} (", make("int", depth), ", ", make("text", depth), "))")
        if form == 20 and self.subquery:
            if (made := self.subquery("bool", rng.choice(["int", "text", "dec", "date", "f8"]))) is not None:
                return made
        if form == 21:
            return self.two_lists()
        return self.comparison(depth)

    def two_lists(self):
        """Two tests of one column, which a planner may bring together."""
        rng, kind = self.rng, self.rng.choice(["int", "dec", "f8", "text", "date", "big"])
        column, tests = str(self.make(kind, 0)), []
        for _ in range(2):
            items = [self.make(kind, 1) if rng.random() < 0.5 else self.literal(kind) for _ in range(rng.randint(1, 6))]
            if rng.random() < 0.2:
                items.append(Node(None, "NULL"))
            tests.append(Node("bool", "(", column, rng.choice([" IN (", " IN (", " NOT IN ("]), Items(items), "))"))
        return Node("bool", "(", tests[0], rng.choice([" AND ", " OR "]), tests[1], ")")

    def comparison(self, depth):
        rng = self.rng
        kind = rng.choice(KINDS)
        other = rng.choice(NUMERIC) if kind in NUMERIC else kind
        if kind == "date" and rng.random() < 0.2:
            other = "ts"
        return Node("bool", "(", self.make(kind, depth), f" {rng.choice(COMPARISONS)} ", self.make(other, depth), ")")

    def int(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(17)
        if form <= 3:
            return Node("int", "(", make("int", depth), rng.choice([" + ", " - ", " * "]), make("int", depth), ")")
        if form == 4:
            return self.divided("int", " / ", depth)
        if form == 5:
            return self.divided("int", " % ", depth)
        if form == 6:
            return Node("int", "(- ", make("int", depth), ")")
        if form == 7:
            return Node("int", "abs(", make("int", depth), ")")
        if form == 8:
            return Node("int", rng.choice(["length(", "char_length(", "octet_length(", "ascii("]), make("text", depth), ")")
        if form == 9:
            return Node("int", "strpos(", make("text", depth), ", ", make("text", depth), ")")
        if form == 10:
            return Node("int", "position(", make("text", depth), " IN ", make("text", depth), ")")
        if form == 11:
            unit = rng.choice(["year", "month", "day", "dow", "doy", "quarter", "week", "isodow", "isoyear"])
            return Node("int", f"extract({unit} FROM ", make(rng.choice(["date", "ts"]), depth), ")::int")
        if form == 12 and rng.random() < 0.4:
            unit = rng.choice(["year", "month", "day", "hour", "minute"])
            return Node("int", f"extract({unit} FROM ", make(rng.choice(["span", "span", "ts"]), depth), ")::int")
        if form == 12:
            return Node("int", "(", make("date", depth), " - ", make("date", depth), ")")
        if form == 13:
            return Node("int", "CAST(", make("bool", depth), " AS int)")
        if form == 14:
            return Node("int", "CAST(", make("dec", depth), " AS int)")
        if form == 15 and self.risky:
            return Node("int", "CAST(", make("text", 0), " AS int)")
        if form == 16:
            return Node("int", "CAST(", make("f8", 0), " AS int)") if self.risky else Node("int", "abs(", make("int", depth), ")")
        return Node("int", "(", make("int", depth), rng.choice([" & ", " | ", " # "]), make("int", depth), ")")

    def big(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(6)
        if form <= 1:
            return Node("big", "(", make("big", 0), rng.choice([" + ", " - "]), make(rng.choice(["int", "big"]), depth), ")")
        if form == 2:
            return self.divided("big", rng.choice([" / ", " % "]), depth)
        if form == 3:
            return Node("big", "CAST(", make("int", depth), " AS bigint)")
        if form == 4:
            return Node("big", "(- ", make("big", depth), ")")
        return Node("big", "abs(", make("big", depth), ")")

    def dec(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(13)
        if form <= 2:
            other = rng.choice(["dec", "dec", "int", "big"])
            return Node("dec", "(", make("dec", depth), rng.choice([" + ", " - "]), make(other, depth), ")")
        if form == 3:
            return Node("dec", "(", make("dec", 0), " * ", make(rng.choice(["dec", "int"]), 0), ")")
        if form == 4:
            return self.divided("dec", " / ", 0)
        if form == 5:
            return self.divided("dec", " % ", 0)
        if form == 6:
            return Node("dec", "round(", make("dec", depth), f", {rng.choice([0, 1, 2, 3, -1])})")
        if form == 7:
            return Node("dec", rng.choice(["round(", "trunc(", "ceil(", "floor(", "abs("]), make("dec", depth), ")")
        if form == 8:
            scale = rng.choice(["numeric(12,3)", "numeric(10,2)", "numeric(12,0)", "decimal(20,6)"])
            return Node("dec", "CAST(", make(rng.choice(["int", "dec"]), depth), f" AS {scale})")
        if form == 9:
            # Branches of different types.
            return Node("dec", "CASE WHEN ", self.condition(depth), " THEN ", make("int", depth), " ELSE ", make("dec", depth), " END")
        if form == 10:
            return Node("dec", "coalesce(", make("int", depth), ", ", make("dec", depth), ")")
        if form == 11:
            return Node("dec", "(- ", make("dec", depth), ")")
        return Node("dec", "(", make("int", depth), " * ", make("dec", 0), ")")

    def f8(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(11)
        if form <= 2:
            other = rng.choice(["f8", "f8", "int", "dec", "big"])
            return Node("f8", "(", make("f8", depth), rng.choice([" + ", " - ", " * "]), make(other, depth), ")")
        if form == 3:
            return self.divided("f8", " / ", depth)
        if form == 4:
            return Node("f8", "CAST(", make(rng.choice(["int", "dec", "big"]), depth), " AS double precision)")
        if form == 5:
            return Node("f8", rng.choice(["abs(", "floor(", "ceil(", "trunc(", "round("]), make("f8", depth), ")")
        if form == 6:
            return Node("f8", "sqrt(abs(", make("f8", depth), "))")
        if form == 7:
            return Node("f8", "CASE WHEN ", self.condition(depth), " THEN ", make(rng.choice(["int", "dec"]), depth), " ELSE ", make("f8", depth), " END")
        if form == 8:
            return Node("f8", "power(", make("f8", 0), ", 2)")
        if form == 9:
            return Node("f8", rng.choice(["ln(", "log(", "exp("]), "1 + least(abs(", make("f8", 0), "), 9))")
        return Node("f8", "(- ", make("f8", depth), ")")

    def text(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(22)
        if form <= 2:
            return Node("text", "(", make("text", depth), " || ", make("text", depth), ")")
        if form == 3:
            return Node("text", rng.choice(["upper(", "lower(", "initcap(", "reverse(", "md5(", "btrim(", "ltrim(", "rtrim("]), make("text", depth), ")")
        if form == 4:
            return Node("text", "substr(", make("text", depth), f", {rng.choice([1, 2, 0, -1])}, {rng.choice([0, 1, 3])})")
        if form == 5:
            return Node("text", "substring(", make("text", depth), f" FROM {rng.choice([1, 2, 0])} FOR {rng.choice([1, 2])})")
        if form == 6:
            return Node("text", rng.choice(["left(", "right("]), make("text", depth), f", {rng.choice([0, 1, 2, -1, 5])})")
        if form == 7:
            return Node("text", "replace(", make("text", depth), ", ", make("text", 0), ", ", make("text", 0), ")")
        if form == 8:
            return Node("text", rng.choice(["lpad(", "rpad("]), make("text", depth), f", {rng.choice([0, 2, 5])}, {rng.choice(['$x$', '$ab$', '$-$'])})".replace("$", "'"))
        if form == 9:
            return Node("text", "concat(", Items([make("text", depth), make("int", depth), make("bool", 0)]), ")")
        if form == 10:
            return Node("text", "concat_ws('-', ", Items([make("text", depth), make("text", depth), make("int", 0)]), ")")
        if form == 11:
            return Node("text", "CAST(", make(rng.choice(["int", "big", "bool", "date", "dec", "text", "ts", "span", "time"]), depth), " AS text)")
        if form == 12:
            return Node("text", "trim(", rng.choice(["BOTH", "LEADING", "TRAILING"]), " 'a' FROM ", make("text", depth), ")")
        if form == 13:
            return Node("text", "split_part(", make("text", depth), f", {rng.choice(['$ $', '$b$', '$-$'])}, {rng.choice([1, 2])})".replace("$", "'"))
        if form == 14:
            return Node("text", "translate(", make("text", depth), ", 'ab', 'xy')")
        if form == 15:
            return Node("text", "repeat(", make("text", 0), f", {rng.choice([0, 1, 3, -1])})")
        if form == 16:
            return Node("text", "overlay(", make("text", depth), " PLACING 'Q' FROM 2)")
        if form == 17:
            return Node("text", "regexp_replace(", make("text", depth), f", '{rng.choice(['a', '[ab]+', '(b)(c)', '$'])}', '{rng.choice(['X', '', '[&]'])}'{rng.choice(['', ', $g$'])})".replace("$g$", "'g'"))
        if form == 18:
            return Node("text", make("text", depth), " || ", make(rng.choice(["int", "bool", "dec", "date"]), depth))  if rng.random() < 0.5 else Node("text", "(", make("int", depth), " || ", make("text", depth), ")")
        if form == 19:
            return Node("text", "to_hex(abs(", make("int", depth), "))")
        if form == 20:
            return Node("text", "CAST(", make("text", depth), f" AS varchar({rng.choice([1, 3, 20])}))")
        return Node("text", "coalesce(", make("text", depth), ", 'none')")

    def date(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(7)
        if form <= 1:
            return Node("date", "(", make("date", depth), rng.choice([" + ", " - "]), self.small_int(depth), ")")
        if form == 2:
            return Node("date", "CAST(", make("ts", depth), " AS date)")
        if form == 3:
            return Node("date", f"date_trunc('{rng.choice(UNITS[:5])}', ", make("ts", depth), ")::date")
        if form == 4:
            return Node("date", "(", self.small_int(depth), " + ", make("date", depth), ")")
        if form == 5:
            return Node("date", f"make_date({rng.choice([2024, 1999])}, {rng.randint(1, 12)}, {rng.randint(1, 28)})")
        return Node("date", f"CAST('2024-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}' AS date)")

    def small_int(self, depth):
        return Node("int", "(", self.make("int", 0), " % 100)")

    def ts(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(6)
        if form == 0:
            return Node("ts", "CAST(", make("date", depth), " AS timestamp)")
        if form == 1:
            return Node("ts", f"date_trunc('{rng.choice(UNITS)}', ", make("ts", depth), ")")
        if form == 2:
            return Node("ts", "(", make(rng.choice(["ts", "date"]), depth), f" {rng.choice('+-')} ", make("span", depth), ")")
        if form == 3:
            return Node("ts", "(", make("ts", depth), f" {rng.choice('+-')} INTERVAL '{rng.choice(INTERVALS)}')")
        if form == 4:
            return Node("ts", "(", make("date", depth), f" {rng.choice('+-')} INTERVAL '{rng.choice(INTERVALS)}')")
        return Node("ts", f"CAST('2024-0{rng.randint(1, 9)}-11 1{rng.randint(0, 9)}:20:30' AS timestamp)")

    def span(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(13)
        if form <= 2:
            return Node("span", "(", make("ts", depth), " - ", make(rng.choice(["ts", "ts", "date"]), depth), ")")
        if form <= 4:
            return Node("span", "(", make("span", depth), rng.choice([" + ", " - "]), make("span", depth), ")")
        if form == 5:
            return Node("span", "(", make("span", depth), f" * {rng.choice(['2', '-1', '0.5', '3', '1.5'])})")
        if form == 6:
            return Node("span", "(", make("span", depth), f" / {rng.choice(['2', '4', '7'])})")
        if form == 7:
            return Node("span", "(- ", make("span", depth), ")")
        if form == 8:
            return Node("span", rng.choice(["justify_days(", "justify_hours(", "justify_interval("]), make("span", depth), ")")
        if form == 9:
            return Node("span", "age(", make("ts", depth), ", ", make("ts", depth), ")")
        if form == 10:
            return Node("span", f"date_trunc('{rng.choice(UNITS)}', ", make("span", depth), ")")
        if form == 11:
            return Node("span", "(", make("time", depth), " - ", make("time", depth), ")")
        return Node("span", f"CAST('{rng.choice(INTERVALS)}' AS interval)")

    def time(self, depth):
        rng, make = self.rng, self.make
        form = rng.randrange(5)
        if form <= 1:
            return Node("time", "CAST(", make("ts", depth), " AS time)")
        if form == 2:
            return Node("time", "(", make("time", depth), rng.choice([" + ", " - "]), make("span", depth), ")")
        if form == 3:
            return Node("time", f"date_trunc('{rng.choice(UNITS[4:])}', ", make("ts", depth), ")::time")
        return Node("time", f"make_time({rng.randint(0, 23)}, {rng.randint(0, 59)}, {rng.choice(['0', '7.5', '59.25'])})")

    def divided(self, kind, op, depth):
        """A division, nearly always by something that is not zero."""
        rng = self.rng
        low, high = self.make(kind, depth), self.make(kind, depth)
        if self.risky and rng.random() < 0.15:
            return Node(kind, "(", low, op, high, ")")
        return Node(kind, "(", low, op, "nullif(", high, ", 0))")


def draw_literal(kind, rng):
    """A literal as users write them."""
    if kind == "bool":
        return rng.choice(["true", "false", "true", "false", "NULL::boolean"])
    if kind == "int":
        return rng.choice(["0", "1", "2", "3", "5", "7", "10", "-1", "-4", "100", "NULL::int"])
    if kind == "big":
        return rng.choice(["0::bigint", "3000000000", "-7::bigint", "42::bigint"])
    if kind == "dec":
        return rng.choice(["0.5", "1.5", "2.25", "10.00", "-3.75", "0.001", "0.0", "7.0", "12.345"])
    if kind == "f8":
        return rng.choice(["0::double precision", "1.5::double precision", "(-2.5)::double precision", "100::double precision", "0.1::double precision", "3::double precision", "0.001::double precision"])
    if kind == "f4":
        return rng.choice(["1.5::real", "0::real"])
    if kind == "text":
        return f"'{rng.choice(WORDS)}'"
    if kind == "date":
        return f"DATE '{rng.choice([2023, 2024, 2025])}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}'"
    if kind == "ts":
        return f"TIMESTAMP '2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:00'"
    if kind == "span":
        return f"INTERVAL '{rng.choice(INTERVALS)}'"
    if kind == "time":
        return f"TIME '{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.choice(['00', '30', '15.5'])}'"
    return f"TIMESTAMP WITH TIME ZONE '2024-{rng.randint(1, 12):02}-10 12:00:00+00'"
