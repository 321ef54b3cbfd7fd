"""varchar(n), char(n) and smallint hold on every way by which rows come in over this protocol."""

import struct

import psycopg
import pytest

COLUMNS = "k int PRIMARY KEY, v varchar(3), c char(2), s smallint"
LONG = "22001"
RANGE = "22003"

# Statements that would bring in a value that is none of its column.
STATEMENTS = [
    ("INSERT INTO {t} (k, v) VALUES (9, 'abcd')", LONG),
    ("INSERT INTO {t} (k, v) SELECT 9, 'ab' || v FROM {t} WHERE k = 1", LONG),
    ("INSERT INTO {t} (k, c) VALUES (9, 'abc')", LONG),
    ("INSERT INTO {t} (k, s) VALUES (9, 40000)", RANGE),
    ("INSERT INTO {t} (k, v) SELECT i, repeat('x', 4) FROM generate_series(10, 300000) AS n (i)", LONG),
    ("INSERT INTO {t} (k, v) VALUES (1, 'abcd') ON CONFLICT (k) DO UPDATE SET v = excluded.v", LONG),
    ("UPDATE {t} SET v = v || 'd' WHERE k = 1", LONG),
    ("UPDATE {t} SET s = 32768 WHERE k = 1", RANGE),
    ("UPDATE {t} SET v = q.t FROM (SELECT 1 AS k, 'abcd' AS t) AS q WHERE {t}.k = q.k", LONG),
    ("MERGE INTO {t} USING (SELECT 1 AS k) AS q ON {t}.k = q.k WHEN MATCHED THEN UPDATE SET v = 'abcd'", LONG),
    ("INSERT OVERWRITE {t} SELECT 9, 'abcd', 'x', 1", LONG),
]


@pytest.fixture
def declared(conn, table):
    name = table(COLUMNS)
    conn.execute(f"INSERT INTO {name} VALUES (1, 'abc', 'ab', 1)")
    return name


def unchanged(conn, name):
    return conn.execute(f"SELECT * FROM {name} ORDER BY k").fetchall() == [(1, "abc", "ab", 1)]


@pytest.mark.parametrize("statement, sqlstate", STATEMENTS)
def test_statements(conn, declared, statement, sqlstate):
    with pytest.raises(psycopg.Error) as refused:
        conn.execute(statement.format(t=declared))
    assert refused.value.sqlstate == sqlstate
    assert unchanged(conn, declared)


@pytest.mark.parametrize("statement, sqlstate", STATEMENTS)
def test_within_a_transaction(conn, declared, statement, sqlstate):
    with pytest.raises(psycopg.Error) as refused:
        with conn.transaction():
            conn.execute(statement.format(t=declared))
    assert refused.value.sqlstate == sqlstate
    assert unchanged(conn, declared)


def test_prepared_inserts(conn, declared):
    insert = f"INSERT INTO {declared} (k, v, s) VALUES (%s, %s, %s)"
    with conn.cursor() as cursor:
        cursor.execute(insert, (2, "äöü", 32767), prepare=True)
        for row, sqlstate in [((3, "äöüß", 1), LONG), ((3, "abc", 32768), RANGE)]:
            with pytest.raises(psycopg.Error) as refused:
                cursor.execute(insert, row, prepare=True)
            assert refused.value.sqlstate == sqlstate
        cursor.executemany(insert, [(4, "a", 4), (5, "ab    ", 5)])
    rows = conn.execute(f"SELECT k, v, s FROM {declared} ORDER BY k").fetchall()
    assert rows == [(1, "abc", 1), (2, "äöü", 32767), (4, "a", 4), (5, "ab ", 5)]


def copied(conn, name, options, data):
    with conn.cursor() as cursor, cursor.copy(f"COPY {name} (k, v, c, s) FROM STDIN {options}") as copy:
        copy.write(data)


@pytest.mark.parametrize(
    "options, line",
    [("", "{}\t{}\t{}\t{}\n"), ("WITH (FORMAT csv, HEADER false)", "{},{},{},{}\n")],
)
def test_copy_of_texts(conn, declared, options, line):
    bad = [((9, "abcd", "x", 1), LONG), ((9, "a", "xyz", 1), LONG), ((9, "a", "x", 40000), RANGE)]
    for row, sqlstate in bad:
        with pytest.raises(psycopg.Error) as refused:
            copied(conn, declared, options, line.format(2, "ab", "x", 2) + line.format(*row))
        assert refused.value.sqlstate == sqlstate
    assert unchanged(conn, declared)
    copied(conn, declared, options, line.format(2, "abc", "x", -32768))
    assert conn.execute(f"SELECT count(*) FROM {declared}").fetchone() == (2,)


def binary(*values):
    """A row in PostgreSQL's binary format of COPY."""
    fields = b""
    for value in values:
        coded = value.encode() if isinstance(value, str) else value
        fields += struct.pack("!i", len(coded)) + coded
    return b"PGCOPY\n\xff\r\n\0" + struct.pack("!iih", 0, 0, len(values)) + fields + struct.pack("!h", -1)


def test_copy_of_binary_values(conn, declared):
    four = lambda number: struct.pack("!i", number)  # noqa: E731
    for row, sqlstate in [
        ((four(9), "abcd", "x", four(1)), LONG),
        ((four(9), "abc", "xyz", four(1)), LONG),
        ((four(9), "abc", "x", four(40000)), RANGE),
    ]:
        with pytest.raises(psycopg.Error) as refused:
            copied(conn, declared, "WITH (FORMAT binary)", binary(*row))
        assert refused.value.sqlstate == sqlstate
    assert unchanged(conn, declared)
    copied(conn, declared, "WITH (FORMAT binary)", binary(four(2), "abc", "x", four(7)))
    assert conn.execute(f"SELECT s FROM {declared} WHERE k = 2").fetchone() == (7,)


def test_the_limits_stay_after_a_flush(conn, declared):
    conn.execute(f"FLUSH TABLE {declared}")
    conn.execute(f"ALTER TABLE {declared} RENAME COLUMN v TO renamed")
    with pytest.raises(psycopg.Error) as refused:
        conn.execute(f"INSERT INTO {declared} (k, renamed) VALUES (2, 'abcd')")
    assert refused.value.sqlstate == LONG
    conn.execute(f"INSERT INTO {declared} (k, renamed) VALUES (2, 'xyz')")
    conn.execute(f"COMPACT TABLE {declared} FULL")
    (text,) = conn.execute(f"SHOW CREATE TABLE {declared}").fetchone()
    assert "renamed varchar(3)" in text and "c char(2)" in text and "s smallint" in text
