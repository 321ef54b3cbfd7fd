"""Each type of a column beside each spelling of a literal, in each comparison.

A literal says how it is to be taken by how it is written and by what stands beside it. Users write numbers
with and without a point, with an exponent, in quotes, with a cast; the answer must be PostgreSQL's.
"""

COLUMNS = ["small", "i", "l", "p", "q", "wide", "d", "r", "s", "day", "at", "seen", "b"]
# A cast may round, cut or fail; what is compared is what comes out of it.
CASTS = [
    "smallint", "int", "bigint", "numeric", "numeric(10,0)", "numeric(8,1)", "numeric(38,12)", "real", "double precision", "text",
    "varchar(2)", "date", "timestamp", "timestamptz",
]  # fmt: skip
SPELLINGS = [
    "0", "1", "-1", "0.0", "-0.0", "0.5", "0.1", ".5", "5.", "-0.5", "1.50", "1e0", "1E-1", "1e15", "1e-16", "123456789012345678",
    "0.10000000000000001", "99999999999999999999", "3000000000", "'1'", "'0.5'", "'-7'", "'1e2'", "'NaN'", "'Infinity'",
    "0.5::double precision", "0.5::real", "0.1::real", "0.5::numeric", "1::int", "1::bigint", "CAST('0.5' AS numeric(3,1))",
    "'a'", "''", "'2024-02-29'", "DATE '2024-02-29'", "'2024-02-29 12:00:00'", "TIMESTAMP '2024-02-29 12:00:00'",
    "TIMESTAMP WITH TIME ZONE '2024-02-29 12:00:00+00'", "'2024-02-29 12:00:00+02'", "true", "'true'", "'f'", "NULL",
]  # fmt: skip
SHAPES = [
    "{c} = {v}", "{v} = {c}", "{c} <> {v}", "{c} < {v}", "{c} >= {v}", "{c} IN ({v})", "{c} IN ({v}, {v}, {v}, {v}, {v})", "{c} NOT IN ({v})",
    "{c} BETWEEN {v} AND {v}", "{c} IS DISTINCT FROM {v}", "CASE {c} WHEN {v} THEN true ELSE false END", "nullif({c}, {v}) IS NULL",
]  # fmt: skip
TABLE = (
    "CREATE TABLE pairs (id int, small smallint, i int, l bigint, p decimal(10,2), q decimal(18,6), wide decimal(38,10),"
    " d double precision, r real, s text, day date, at timestamp, seen timestamp with time zone, b boolean)"
)
ROWS = [
    "(1, 1, 1, 1, 0.50, 0.500000, 0.5, 0.5, 0.5, '0.5', DATE '2024-02-29', TIMESTAMP '2024-02-29 12:00:00',"
    " TIMESTAMP WITH TIME ZONE '2024-02-29 10:00:00+00', true)",
    "(2, 0, 0, 0, 0.00, 0.000000, 0, '-0.0'::double precision, '-0.0'::real, '', DATE '2024-03-01', TIMESTAMP '2024-02-29 00:00:00',"
    " TIMESTAMP WITH TIME ZONE '2024-02-29 12:00:00+00', false)",
    "(3, -7, -7, 3000000000, 0.10, 0.100000, 0.1, 0.1, 0.1, '0.1', DATE '1999-12-31', TIMESTAMP '2024-02-29 12:00:00.5',"
    " TIMESTAMP WITH TIME ZONE '2024-02-29 00:00:00+00', true)",
    "(4, 100, 2147483647, 123456789012345678, 99.99, 123456.789, 9999999999, '1e15'::double precision, '1e15'::real, 'a',"
    " DATE '2024-02-29', TIMESTAMP '1999-12-31 23:59:59', TIMESTAMP WITH TIME ZONE '1999-12-31 23:59:59+00', NULL)",
    "(5, -1, -1, -1, -1.00, -1.000000, -1, 1e-16::double precision, '1e-16'::real, '1', DATE '2024-02-29', NULL, NULL, false)",
    "(6, NULL, NULL, NULL, NULL, NULL, NULL, '0.0'::double precision, '0.0'::real, NULL, NULL, NULL, NULL, NULL)",
    "(7, 5, 5, 5, 5.00, 5.000000, 5, 'Infinity'::double precision, 'Infinity'::real, 'true', DATE '2024-02-29', NULL, NULL, true)",
    "(8, 1, 1, 1, 1.50, 1.500000, 1.5, 'NaN'::double precision, 'NaN'::real, 'f', DATE '2024-02-29', NULL, NULL, true)",
]


def setup():
    """The statements that make the table."""
    yield TABLE
    yield f"INSERT INTO pairs VALUES {', '.join(ROWS[:5])}"
    yield "FLUSH TABLE pairs"
    yield f"INSERT INTO pairs VALUES {', '.join(ROWS[5:])}"


def statements(rng, part):
    """The pairs in one shape each, or all of them if `part` is 1; in WHERE, where files are judged, too.

    Of the columns with casts, as many as that, each in one shape.
    """
    for column in COLUMNS:
        for spelling in SPELLINGS:
            for shape in SHAPES if part >= 1 else rng.sample(SHAPES, 1):
                condition = shape.format(c=column, v=spelling)
                yield f"SELECT id FROM pairs WHERE {condition}" if rng.random() < 0.5 else f"SELECT id, {condition} FROM pairs"
    for column in COLUMNS:
        for cast in CASTS:
            for spelling in SPELLINGS:
                if rng.random() < min(1, part * 2):
                    condition = rng.choice(SHAPES).format(c=f"CAST({column} AS {cast})", v=spelling)
                    yield f"SELECT id FROM pairs WHERE {condition}" if rng.random() < 0.5 else f"SELECT id, {condition} FROM pairs"
