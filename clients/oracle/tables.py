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


def rows_of(name, rng):
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
        for n in range(1, 61):
            yield [
                str(n), null(number(-9, 9)), null(number(0, 3)), null(rng.choice([number(-5, 5), "9000000000", "-7"])),
                null(dec(0, 99, 2)), null(dec(0, 999, 6)), null(f"{double()}::double precision"),
                null(f"{rng.choice(['0.5', '1.25', '-2', '0', '16'])}::real"), null(rng.choice(bools), 5),
                null(text()), null(text(), 4), null(day()), null(moment()), null(zoned()),
            ]  # fmt: skip
    elif name == "others":
        for n in range(1, 16):
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
    """The statements that make and fill the tables; `None` where Stoa is to bring its rows into files."""
    rng = random.Random(seed)
    for name, columns in TABLES.items():
        declared = [f"{column} {kind}{' NOT NULL' if (name, column) in NEVER_NULL else ''}" for column, kind, _ in columns]
        yield f"CREATE TABLE {name} ({', '.join(declared)})"
        rows = ["(" + ", ".join(row) + ")" for row in rows_of(name, rng)]
        middle = len(rows) * 2 // 3
        for part, flush in ((rows[:middle], True), (rows[middle:], False)):
            if part:
                yield f"INSERT INTO {name} VALUES {', '.join(part)}"
                if flush:
                    yield f"FLUSH TABLE {name}"
