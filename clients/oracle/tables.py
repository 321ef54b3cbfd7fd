"""The tables that statements are about, with the same rows on both sides.

Small tables with NULLs, equal values, the ends of ranges; `facts` has files and fresh rows on Stoa's
side, so that reports, templates and plans all have something to read.
"""

import random

# Name, type as both spell it, and the kind that expressions know it by; `None`: only named by cases.
NUMBERS = [
    ("id", "int", "int"),
    ("i", "int", "int"),
    ("j", "int", "int"),
    ("l", "bigint", "big"),
    ("p", "decimal(10,2)", "dec"),
    ("q", "decimal(18,6)", "dec"),
    ("d", "double precision", "f8"),
    ("r", "real", "f4"),
    ("b", "boolean", "bool"),
    ("s", "text", "text"),
    ("u", "text", "text"),
    ("day", "date", "date"),
    ("at", "timestamp", "ts"),
    ("seen", "timestamp with time zone", "tstz"),
]
TABLES = {
    "facts": NUMBERS,
    "others": [
        ("id", "int", "int"),
        ("i", "int", "int"),
        ("k", "bigint", "big"),
        ("p", "decimal(12,4)", "dec"),
        ("d", "double precision", "f8"),
        ("b", "boolean", "bool"),
        ("s", "text", "text"),
        ("day", "date", "date"),
        ("at", "timestamp", "ts"),
    ],
    "few": [("i", "int", "int"), ("s", "text", "text"), ("p", "decimal(8,3)", "dec")],
    "nothing": [("i", "int", "int"), ("s", "text", "text"), ("d", "double precision", "f8")],
    # As in sqlite's own suites.
    "t1": [(name, "int", "int") for name in "abcde"],
    "tab0": [(f"col{n}", "int", "int") for n in range(3)],
    "tab1": [(f"col{n}", "int", "int") for n in range(3)],
    "tab2": [(f"col{n}", "int", "int") for n in range(3)],
}

WORDS = ["a", "b", "ab", "abc", "A", "Abc", "", " ", "x y", "50%", "a_c", "Ünï", "ß", "z'z", "10", "-3", "2.50"]


# Of larger tables, files have many row groups.
GROUPED = " TBLPROPERTIES ('stoa.orc.row-index-stride' = '100')"
LARGER = {"facts": 20, "others": 20}


def rows_of(name, rng, times=1):
    """The rows of a table; `times` as many where that is more than usual."""
    def null(value, share=7):
        return "NULL" if rng.randrange(share) == 0 else value

    def text():
        word = rng.choice(WORDS)
        return "'" + word.replace("'", "''") + "'"

    def day():
        return f"DATE '{rng.choice([2023, 2024, 2024, 2025]):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}'"

    def moment():
        clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
        fraction = rng.choice(["", "", ".5", ".123456"])
        return f"TIMESTAMP '2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} {clock}{fraction}'"

    def zoned():
        return moment().replace("TIMESTAMP", "TIMESTAMP WITH TIME ZONE")[:-1] + "+00'"

    def number(low, high):
        return str(rng.randint(low, high))

    def dec(low, high, digits):
        return f"{rng.randint(low, high)}.{rng.randint(0, 10**digits - 1):0{digits}}"

    def double():
        return rng.choice(["0.0", "0.5", "-0.5", "1.0", "1e15", "2.25", "-3.125", "1e-16", "100.0", "7.0", "0.1"])

    bools = ["true", "false"]
    if name == "facts":
        for n in range(1, 60 * times + 1):
            yield [
                str(n), null(number(-9, 9)), null(number(0, 3)), null(rng.choice([number(-5, 5), "9000000000", "-7"])),
                null(dec(0, 99, 2)), null(dec(0, 999, 6)), null(f"{double()}::double precision"),
                null(f"{rng.choice(['0.5', '1.25', '-2', '0', '16'])}::real"), null(rng.choice(bools), 5),
                null(text()), null(text(), 4), null(day()), null(moment()), null(zoned()),
            ]  # fmt: skip
    elif name == "others":
        for n in range(1, 15 * times + 1):
            yield [
                str(n), null(number(-4, 6)), null(number(-3, 3)), null(dec(0, 50, 4)),
                null(f"{double()}::double precision"), null(rng.choice(bools), 4), null(text()), null(day()),
                null(moment()),
            ]  # fmt: skip
    elif name == "few":
        yield from (["1", "'a'", "1.000"], ["2", "NULL", "2.500"], ["NULL", "'b'", "NULL"], ["2", "'a'", "2.500"])
    elif name == "t1":
        for n in range(30):
            numbers = [100 + 5 * n + k for k in range(5)]
            rng.shuffle(numbers)
            yield [null(str(value), 12) for value in numbers]
    elif name.startswith("tab"):
        for _ in range(3):
            yield [number(0, 99) for _ in range(3)]


# Columns that are declared so: the engine simplifies what it is told of them.
NEVER_NULL = {("facts", "id"), ("others", "id"), ("tab0", "col0"), ("tab1", "col1"), ("tab2", "col2")}


def statements(seed=1):
    """The statements that make and fill the tables, as Stoa knows them; see `for_postgres`."""
    rng = random.Random(seed)
    for name in TABLES:
        rows = values(rows_of(name, rng))
        middle = len(rows) * 2 // 3
        yield from table(name, "", rows[:middle], rows[middle:])


def larger(seed=1):
    """The statements that make larger tables of some: in four files and in none."""
    rng = random.Random(seed)
    for name, times in LARGER.items():
        rows = values(rows_of(name, rng, times))
        ends = [len(rows) * part // 6 for part in range(5)]
        files = [rows[start:end] for start, end in zip(ends, ends[1:])]
        yield f"DROP TABLE {name}"
        yield from table(name, GROUPED, *files, rows[ends[-1]:])


def for_postgres(statements):
    """The same statements for PostgreSQL, which has no `FLUSH` and no `TBLPROPERTIES`."""
    return [statement.removesuffix(GROUPED) for statement in statements if not statement.startswith("FLUSH")]


def values(rows):
    return ["(" + ", ".join(row) + ")" for row in rows]


def table(name, properties, *parts):
    """A table with some rows in each of its files, and the last ones in none."""
    declared = [
        f"{column} {kind}{' NOT NULL' if (name, column) in NEVER_NULL else ''}" for column, kind, _ in TABLES[name]
    ]
    yield f"CREATE TABLE {name} ({', '.join(declared)}){properties}"
    for number, part in enumerate(parts, start=1):
        if part:
            yield f"INSERT INTO {name} VALUES {', '.join(part)}"
            if number < len(parts):
                yield f"FLUSH TABLE {name}"
