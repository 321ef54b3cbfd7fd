"""Long INSERTs of literals, which Stoa reads without a syntax tree: the same rows, or the same refusal, as a real PostgreSQL."""

import random

import psycopg
import pytest

ROWS = 200
COLUMNS = """id int NOT NULL, l bigint, m smallint, s text, v varchar(8), p decimal(10,2), d double precision, r real,
    b boolean, day date, at timestamp, u uuid, x text DEFAULT 'as declared'"""
WORDS = ["a", "", " ", "it''s", "''", "Ünï", "50%", "a\nb", "x), (1", "-- no", "\\n", "null"]
# What a value of each column may look like: the ways in which one writes it, each of them plain or in need of the parser.
PLAIN = {
    "l": ["0", "-9000000000", "9223372036854775807", "007", "NULL"],
    "m": ["1", "-1", "32767", "NULL"],
    "s": [f"'{word}'" for word in WORDS] + ["NULL"],
    "v": ["'ab'", "'12345678'", "NULL"],
    "p": ["1", "-2.5", "99999999.99", "0.01", "NULL"],
    "d": ["0", "0.1", "-2.25", "123456789.5", "NULL"],
    "r": ["0.5", "-1.25", "16", "NULL"],
    "b": ["true", "FALSE", "NULL"],
    "day": ["DATE '2026-01-31'", "'2024-02-29'", "date'1999-12-31'", "NULL"],
    "at": ["TIMESTAMP '2026-01-31 12:00:00'", "'2024-02-29 23:59:59.123456'", "'2026-01-31'", "NULL"],
    "u": ["'00000000-0000-0000-0000-00000000000a'", "NULL"],
    "x": ["'given'", "NULL"],
}
OTHER = {
    "l": ["1 + 1", "'12'", "1e3", "+5", "- 4", "2.5"],
    "m": ["(7)", "'3'"],
    "s": ["E'a\\tb'", "'a' || 'b'", "upper('a')", "12", "$$x$$", "'a'\n'b'"],
    "v": ["'ab'::text", "substr('abcdefghij', 1, 8)"],
    "p": ["1.005", "'3.50'", ".5", "7."],
    "d": ["1e-16", "'NaN'", "'-0'", "0.1234567890123456789"],
    "r": ["'0.1'", "1.1"],
    "b": ["'t'", "1 = 1", "not true"],
    "day": ["'January 8, 1999'", "DATE '2026-01-31' + 1", "'20260131'"],
    "at": ["'2026-01-31T12:00:00Z'", "TIMESTAMP '2026-01-31' + INTERVAL '1 hour'", "DATE '2026-01-31'"],
    "u": ["'A0EEBC999C0B4EF8BB6D6BB9BD380A11'"],
    "x": ["DEFAULT", "'a'::varchar"],
}
WRONG = {
    "l": ["9223372036854775808", "'x'"],
    "m": ["32768"],
    "v": ["'123456789'"],
    "p": ["100000000", "'x'"],
    "d": ["'x'"],
    "b": ["'maybe'"],
    "day": ["'2026-02-30'", "DATE '2026-13-01'"],
    "at": ["'2026-01-31 25:00:00'"],
    "u": ["'x'"],
    "s": ["nothing_of_that_name", "'open"],
}

# Of another type than the column: a row among many has the fate that it has alone, whatever that is.
MISFITS = [("l", "true"), ("m", "DATE '2026-01-31'"), ("s", "5"), ("b", "2"), ("day", "5"), ("at", "true"), ("u", "7"), ("d", "false")]


@pytest.fixture
def oracle(postgres):
    with psycopg.connect(host="127.0.0.1", port=postgres, user="stoa", dbname="stoa", autocommit=True) as connection:
        yield connection


@pytest.fixture
def both(conn, oracle, table):
    """The same table on both sides; gives its name, and a function that runs a statement on both and compares."""
    name = table(COLUMNS)
    oracle.execute(f"CREATE TABLE {name} ({COLUMNS})")

    def run(statement):
        outcomes = []
        for side in (conn, oracle):
            try:
                outcomes.append(side.execute(statement.encode()).statusmessage)
            except psycopg.Error as error:
                outcomes.append(error.sqlstate)
        assert outcomes[0] == outcomes[1], statement[:2000]
        return outcomes[0]

    def same():
        query = f"SELECT * FROM {name} ORDER BY id"
        rows = [repr(side.execute(query).fetchall()) for side in (conn, oracle)]
        assert rows[0] == rows[1]

    return name, run, same


def row(rng, number, columns, odd=None):
    """One row; `odd` is a column and how it is written there."""
    values = [str(number)]
    for column in columns:
        values.append(odd[1] if odd and odd[0] == column else rng.choice(PLAIN[column]))
    return "(" + rng.choice([", ", ",", " ,\n"]).join(values) + ")"


def insert(name, columns, rows, rng):
    listed = f" (id, {', '.join(columns)})" if len(columns) < len(PLAIN) or rng.random() < 0.5 else ""
    statement = f"INSERT INTO {name}{listed} VALUES {', '.join(rows)}"
    assert len(statement) > 4096
    return statement + rng.choice(["", ";", " ;\n"])


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_plain_literals(both, seed):
    name, run, same = both
    rng = random.Random(seed)
    for part in range(3):
        columns = rng.sample(list(PLAIN), rng.randint(6, len(PLAIN))) if part else list(PLAIN)
        rows = [row(rng, part * ROWS + n, columns) for n in range(ROWS)]
        assert run(insert(name, columns, rows, rng)) == f"INSERT 0 {ROWS}"
    same()


def test_one_value_that_is_no_plain_literal(both):
    name, run, same = both
    rng, number = random.Random(7), 0
    for column, ways in OTHER.items():
        for way in ways:
            rows = [row(rng, number + n, PLAIN) for n in range(80)]
            rows[rng.randrange(1, 80)] = row(rng, number + 80, PLAIN, (column, way))
            run(insert(name, list(PLAIN), rows, rng))
            number += 100
    same()


def test_one_value_that_does_not_fit(both):
    name, run, same = both
    rng = random.Random(8)
    for column, ways in WRONG.items():
        for way in ways:
            rows = [row(rng, n, PLAIN) for n in range(80)]
            rows[rng.randrange(1, 80)] = row(rng, 80, PLAIN, (column, way))
            assert not run(insert(name, list(PLAIN), rows, rng)).startswith("INSERT"), way
    for what in ("(NULL, 1)", "(1)", "(1, 2, 3)", "()", "(1, 2"):
        rows = [f"({n}, {n})" for n in range(900)]
        rows[450] = what
        assert not run(insert(name, ["l"], rows, rng)).startswith("INSERT"), what
    same()
    assert run(f"SELECT * FROM {name}") == "SELECT 0"


@pytest.mark.parametrize("column, way", MISFITS)
def test_a_row_among_many_has_the_fate_that_it_has_alone(conn, table, column, way):
    name, rng, outcomes = table(COLUMNS), random.Random(9), []
    for count in (1, 80):
        rows = [row(rng, n, PLAIN) for n in range(1, count)] + [row(rng, 0, PLAIN, (column, way))]
        try:
            conn.execute(f"INSERT INTO {name} VALUES {', '.join(rows)}".encode())
            outcomes.append(conn.execute(f"SELECT {column} FROM {name} WHERE id = 0").fetchone())
            conn.execute(f"DELETE FROM {name}")
        except psycopg.Error as error:
            outcomes.append(error.sqlstate)
    assert outcomes[0] == outcomes[1]


def test_as_prepared_statements_and_among_others(conn, oracle, both):
    name, run, same = both
    rows = ", ".join(f"({n}, 'row {n}')" for n in range(1000))
    for side in (conn, oracle):
        side.execute(f"INSERT INTO {name} (id, s) VALUES {rows}", prepare=True, binary=True)
        side.execute(f"SELECT 1; INSERT INTO {name} (id, s) VALUES {rows.replace('(', '(50000')}; DELETE FROM {name} WHERE id = 5")
        with side.transaction(force_rollback=True):
            side.execute(f"INSERT INTO {name} (id, s) VALUES {rows.replace('(', '(60000')}")
    same()
    conn.execute("CREATE TEMPORARY TABLE held AS SELECT 1 AS id, 'x' AS s")
    oracle.execute("CREATE TEMPORARY TABLE held AS SELECT 1 AS id, 'x' AS s")
    run(f"INSERT INTO held VALUES {rows}")
    counts = [side.execute("SELECT count(*), sum(id), min(s) FROM held").fetchone() for side in (conn, oracle)]
    assert counts[0] == counts[1]
