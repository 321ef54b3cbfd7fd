"""psycopg 3: parameters and results in text and binary, types, NULLs, cursors, COPY, cancel."""

import datetime as dt
import threading
from decimal import Decimal

import psycopg
import pytest
from psycopg.rows import dict_row

BOTH = pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])

UTC = dt.timezone.utc
VALUES = {
    "boolean": True,
    "integer": -(2**31),
    "bigint": 2**63 - 1,
    "real": 1.5,
    "double precision": 0.1,
    "decimal(20, 4)": Decimal("-1234567890123456.7890"),
    "text": 'ä"\\\t\n€',
    "bytea": bytes(range(256)),
    "date": dt.date(2024, 2, 29),
    "timestamp": dt.datetime(2024, 2, 29, 12, 34, 56, 789012),
    "timestamptz": dt.datetime(2024, 2, 29, 12, 34, 56, 789012, tzinfo=UTC),
}


def test_server_is_seen_as_postgresql_16(conn):
    assert conn.info.server_version // 10000 == 16
    assert conn.info.parameter_status("server_encoding") == "UTF8"
    assert conn.info.parameter_status("integer_datetimes") == "on"
    assert conn.info.backend_pid > 0


@BOTH
@pytest.mark.parametrize("sql_type", VALUES)
def test_a_value_goes_in_and_comes_out(conn, table, sql_type, binary):
    name = table(f"id integer, v {sql_type}")
    value = VALUES[sql_type]
    with conn.cursor(binary=binary) as cur:
        mark = "%b" if binary else "%t"
        cur.execute(f"INSERT INTO {name} VALUES (1, {mark}), (2, NULL)", [value])
        assert cur.rowcount == 2
        rows = cur.execute(f"SELECT id, v FROM {name} ORDER BY id").fetchall()
        assert rows == [(1, value), (2, None)]
        found = cur.execute(f"SELECT id FROM {name} WHERE v = {mark}", [value]).fetchall()
        assert found == [(1,)]


@BOTH
def test_null_parameters_of_every_type(conn, table, binary):
    columns = ", ".join(f"c{i} {sql_type}" for i, sql_type in enumerate(VALUES))
    name = table(columns)
    marks = ", ".join(["%b" if binary else "%t"] * len(VALUES))
    conn.execute(f"INSERT INTO {name} VALUES ({marks})", [None] * len(VALUES))
    assert conn.execute(f"SELECT * FROM {name}", binary=binary).fetchall() == [(None,) * len(VALUES)]


@BOTH
def test_arrays_structs_and_intervals(conn, binary):
    row = conn.execute(
        "SELECT ARRAY[1, 2, NULL], ARRAY['a', 'b,c', ''], INTERVAL '1 day 2 hours'", binary=binary
    ).fetchone()
    assert row == ([1, 2, None], ["a", "b,c", ""], dt.timedelta(days=1, hours=2))
    value = conn.execute("SELECT named_struct('a', 1, 'b', 'x')", binary=binary).fetchone()[0]
    assert value == {"a": 1, "b": "x"}


@BOTH
def test_times_of_day(conn, binary):
    time = dt.time(12, 34, 56, 789000)
    mark = "%b" if binary else "%t"
    row = conn.execute(f"SELECT CAST({mark} AS time), TIME '00:00:01.5'", [time], binary=binary)
    assert row.fetchone() == (time, dt.time(0, 0, 1, 500000))


def test_parameters_compare_by_value_not_by_column_type(conn, table):
    name = table("i integer, d decimal(10, 2)")
    conn.execute(f"INSERT INTO {name} VALUES (1, 1.23), (2, 1.24)")
    count = lambda where, value: conn.execute(
        f"SELECT count(*) FROM {name} WHERE {where}", [value]
    ).fetchone()[0]
    assert count("i = %s", Decimal("1.5")) == 0
    assert count("d > %s", Decimal("1.235")) == 1
    assert count("i < %s", 2**40) == 2


def test_any_array_parameter(conn, table):
    name = table("i integer")
    conn.execute(f"INSERT INTO {name} VALUES (1), (2), (3)")
    rows = conn.execute(f"SELECT i FROM {name} WHERE i = ANY(%s) ORDER BY i", [[1, 3, 9]]).fetchall()
    assert rows == [(1,), (3,)]


def test_executemany_and_pipeline(conn, table):
    name = table("i integer, s text")
    with conn.cursor() as cur:
        cur.executemany(f"INSERT INTO {name} VALUES (%s, %s)", [(i, f"s{i}") for i in range(5)])
    assert conn.execute(f"SELECT count(*), max(s) FROM {name}").fetchone() == (5, "s4")
    with conn.pipeline():
        first = conn.execute("SELECT 1")
        second = conn.execute("SELECT 2")
    assert (first.fetchone(), second.fetchone()) == ((1,), (2,))


def test_an_error_in_a_pipeline_ends_it_only(conn):
    with pytest.raises(psycopg.Error):
        with conn.pipeline():
            conn.execute("SELECT 1")
            conn.execute("SELECT * FROM nothing")
            conn.execute("SELECT 2")
    assert conn.execute("SELECT 3").fetchone() == (3,)


def test_prepared_statements_are_reused(conn):
    for i in range(10):
        assert conn.execute("SELECT %s::int + 1", [i], prepare=True).fetchone() == (i + 1,)


def test_rows_as_dicts_and_descriptions(conn):
    with conn.cursor(row_factory=dict_row) as cur:
        cur.execute("SELECT CAST(1 AS bigint) AS one, CAST(2.5 AS decimal(10, 2)) AS money")
        assert [c.name for c in cur.description] == ["one", "money"]
        assert [c.type_code for c in cur.description] == [20, 1700]
        assert (cur.description[1].precision, cur.description[1].scale) == (10, 2)
        assert cur.fetchone() == {"one": 1, "money": Decimal("2.50")}


@BOTH
def test_server_side_cursor(binary):
    with psycopg.connect() as conn:
        with conn.cursor("my cursor", binary=binary) as cur:
            cur.itersize = 100
            cur.execute(
                "SELECT value FROM generate_series(1, 9999) AS s(value) ORDER BY value LIMIT %s", [1000], binary=binary
            )
            assert cur.fetchone() == (1,)
            assert cur.fetchmany(10) == [(i,) for i in range(2, 12)]
            assert sum(1 for _ in cur) == 989


def test_streamed_rows(conn):
    with conn.cursor() as cur:
        rows = cur.stream("SELECT value FROM generate_series(1, 5000) AS s(value) ORDER BY value")
        assert sum(value for (value,) in rows) == 5000 * 5001 // 2


def test_copy_in_and_out(conn, table):
    name = table("i integer, s text, d date")
    with conn.cursor() as cur:
        with cur.copy(f"COPY {name} FROM STDIN") as copy:
            for i in range(1000):
                copy.write_row((i, None if i % 2 else "a\tb\\", dt.date(2024, 1, 1)))
        assert cur.rowcount == 1000
        with cur.copy(f"COPY (SELECT * FROM {name} ORDER BY i) TO STDOUT") as copy:
            copy.set_types(["int4", "text", "date"])
            rows = list(copy.rows())
    assert len(rows) == 1000
    assert rows[0] == (0, "a\tb\\", dt.date(2024, 1, 1))
    assert rows[1] == (1, None, dt.date(2024, 1, 1))


ARRAYS = {
    "{1,2,3}": '{a,"b c",NULL,"null"}',
    "{}": "{}",
    "\\N": '{"","\\\\"","\\\\\\\\","{x}",ü}',
    "{ 1 , -2 ,NULL}": "{ a b , c\\\\ d }",
}
WRONG_ARRAYS = ["1,2", "{1,2", "{1,,2}", "{1}2", "{1,2}}", "{x}", '{"1}', "{{1},2}"]


def test_arrays_are_copied_as_postgresql_writes_them(conn, table, postgres):
    name = table("i integer[], s text[]")
    with psycopg.connect(host="127.0.0.1", port=postgres, user="stoa", dbname="stoa", autocommit=True) as real:
        real.execute(f"CREATE TABLE {name} (i integer[], s text[])")
        written = []
        for server in (conn, real):
            with server.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for ints, texts in ARRAYS.items():
                    copy.write(f"{ints}\t{texts}\n")
            with server.cursor().copy(f"COPY {name} TO STDOUT") as copy:
                written.append(sorted(bytes(row) for row in copy))
            for wrong in WRONG_ARRAYS:
                with pytest.raises(psycopg.DataError), server.cursor().copy(f"COPY {name} (i) FROM STDIN") as copy:
                    copy.write(f"{wrong}\n")
        assert written[0] == written[1] and len(written[0]) == len(ARRAYS)
        rows = f"SELECT i, s FROM {name} ORDER BY s"
        assert conn.execute(rows).fetchall() == real.execute(rows).fetchall()


COPIED = {
    **{kind: value for kind, value in VALUES.items() if kind != "bytea"},
    "bytea": b"\x00\xff",
    "numeric(38, 10)": Decimal("-0.0000000001"),
    "integer[]": [1, None, -3],
    "text[]": ["a", "", None, '"{},\\'],
    "double precision[]": [],
}
SET_TYPES = [kind.split("(")[0].replace("decimal", "numeric") for kind in COPIED]
COPIED_COLUMNS = ", ".join(f"c{number} {kind}" for number, kind in enumerate(COPIED))


def copy_binary_in(conn, name, rows):
    with conn.cursor() as cur:
        with cur.copy(f"COPY {name} FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int4", *SET_TYPES])
            for row in rows:
                copy.write_row(row)
        return cur.rowcount


def copy_binary_out(conn, name):
    query = f"COPY (SELECT * FROM {name} ORDER BY i) TO STDOUT (FORMAT BINARY)"
    with conn.cursor() as cur, cur.copy(query) as copy:
        return b"".join(copy)


def test_binary_copies_are_those_of_postgresql(conn, table, postgres):
    columns = f"i integer, {COPIED_COLUMNS}"
    name = table(columns)
    rows = [(0, *COPIED.values()), (1, *(None for _ in COPIED)), (2, *COPIED.values())]
    with psycopg.connect(host="127.0.0.1", port=postgres, user="stoa", dbname="stoa", autocommit=True) as real:
        real.execute(f"CREATE TABLE {name} ({columns})")
        for server in (conn, real):
            assert copy_binary_in(server, name, rows) == len(rows)
        sent = copy_binary_out(conn, name)
        assert sent == copy_binary_out(real, name)
        # What Stoa sends, PostgreSQL takes, and the other way round.
        for server in (conn, real):
            server.execute(f"TRUNCATE {name}")
            with server.cursor().copy(f"COPY BINARY {name} FROM STDIN") as copy:
                copy.write(sent)
            assert copy_binary_out(server, name) == sent
    with conn.cursor() as cur, cur.copy(f"COPY {name} TO STDOUT (FORMAT BINARY)") as copy:
        copy.set_types(["int4", *SET_TYPES])
        assert sorted(copy.rows(), key=lambda row: row[0]) == rows


def test_damaged_binary_copies_are_refused_as_postgresql_refuses_them(conn, table, postgres):
    name = table("i integer, s text")
    start = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    row = b"\0\2" + b"\0\0\0\4" + b"\0\0\0\7" + b"\0\0\0\1a"
    damaged = [
        start[:10],
        b"1\ta\n",
        start[:-1],
        start[:11] + b"\0\1\0\0" + bytes(4),
        start[:11] + b"\x80\0\0\0" + bytes(4),
        start + row + b"\0\3",
        start + row + b"\0\2\0\0",
        start + row + b"\0\2\xff\xff\xff\xfe",
        start + row + b"\xff\xff\0",
        start + row + b"\0\2\0\0\0\5" + bytes(5) + b"\xff" * 4,
        start + row + b"\0\2\xff\xff\xff\xff\0\0\0\1\xff",
    ]
    with psycopg.connect(host="127.0.0.1", port=postgres, user="stoa", dbname="stoa", autocommit=True) as real:
        real.execute(f"CREATE TABLE {name} (i integer, s text)")
        for data in damaged:
            codes = []
            for server in (conn, real):
                with pytest.raises(psycopg.Error) as raised:
                    with server.cursor().copy(f"COPY {name} FROM STDIN (FORMAT BINARY)") as copy:
                        copy.write(data)
                codes.append(raised.value.sqlstate)
                assert server.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,)
            assert codes[0] == codes[1], data
        # Rows without the mark of the end, as some drivers send them.
        for server in (conn, real):
            with server.cursor().copy(f"COPY {name} FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(start + row)
            assert server.execute(f"SELECT * FROM {name}").fetchall() == [(7, "a")]


def test_no_program_is_run(conn, table):
    name = table("i integer")
    for sql in [
        f"COPY {name} FROM PROGRAM 'echo 1'",
        f"COPY {name} TO PROGRAM 'cat'",
        "COPY (SELECT 1) TO PROGRAM 'cat'",
    ]:
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            conn.execute(sql)


def test_copy_given_up_leaves_nothing(conn, table):
    name = table("i integer")
    with pytest.raises(ZeroDivisionError):
        with conn.cursor() as cur, cur.copy(f"COPY {name} FROM STDIN") as copy:
            copy.write_row((1,))
            raise ZeroDivisionError
    assert conn.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,)


def test_copy_error_names_the_value(conn, table):
    name = table("i integer")
    with pytest.raises(psycopg.Error) as raised:
        with conn.cursor() as cur, cur.copy(f"COPY {name} FROM STDIN") as copy:
            copy.write(b"1\nnonsense\n")
    assert "nonsense" in str(raised.value) + str(raised.value.diag.message_detail)
    assert conn.execute("SELECT 1").fetchone() == (1,)


def test_errors_carry_their_codes(conn):
    for sql, state in [
        ("SELEC 1", "42601"),
        ("SELECT * FROM nothing", "42P01"),
        ("SELECT nothing FROM (SELECT 1 AS a) AS t", "42703"),
        ("SELECT nothing(1)", "42883"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT CAST('x' AS int)", "22P02"),
    ]:
        with pytest.raises(psycopg.Error) as raised:
            conn.execute(sql).fetchall()
        assert raised.value.sqlstate == state, sql


def test_transactions_as_drivers_expect_them(table, conn):
    name = table("i integer")
    with psycopg.connect() as other:
        assert other.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        other.execute("SELECT 1")
        assert other.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.Error):
            other.execute("SELECT * FROM nothing")
        assert other.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            other.execute("SELECT 1")
        other.rollback()
        notices = []
        other.add_notice_handler(lambda diag: notices.append(diag.severity))
        other.execute(f"INSERT INTO {name} VALUES (1)")
        other.commit()
        assert notices == []
        with other.transaction():
            with other.transaction():
                other.execute("SELECT 1")
    assert conn.execute(f"SELECT count(*) FROM {name}").fetchone() == (1,)


def test_cancel(conn):
    timer = threading.Timer(0.3, conn.cancel)
    timer.start()
    with pytest.raises(psycopg.errors.QueryCanceled):
        conn.execute(
            "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(value) WHERE value % 7 = 8"
        ).fetchall()
    timer.join()
    assert conn.execute("SELECT 1").fetchone() == (1,)


def test_settings(conn):
    conn.execute("SET TimeZone = 'Europe/Berlin'")
    assert conn.info.parameter_status("TimeZone") == "Europe/Berlin"
    value = conn.execute("SELECT TIMESTAMPTZ '2024-07-01 12:00:00+00'").fetchone()[0]
    assert value.utcoffset() == dt.timedelta(hours=2)
    with pytest.raises(psycopg.Error) as raised:
        conn.execute("SET no_such_setting = 1")
    assert raised.value.sqlstate == "42704"
    with psycopg.connect(options="-c search_path=public", application_name="check") as other:
        assert other.execute("SHOW application_name").fetchone() == ("check",)


def test_catalog_queries_of_tools(conn, table):
    name = table("a integer NOT NULL, b decimal(10, 2)")
    rows = conn.execute(
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull "
        "FROM pg_catalog.pg_attribute a WHERE a.attrelid = %s::regclass AND a.attnum > 0 "
        "AND NOT a.attisdropped ORDER BY a.attnum",
        [name],
    ).fetchall()
    assert rows == [("a", "integer", True), ("b", "numeric(10,2)", False)]
    rows = conn.execute(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name = %s ORDER BY ordinal_position",
        [name],
    ).fetchall()
    assert [(n, null) for n, _, null in rows] == [("a", "NO"), ("b", "YES")]
    assert conn.execute("SELECT current_schema()").fetchone() == ("public",)
    assert "PostgreSQL 16" in conn.execute("SELECT version()").fetchone()[0]
    conn.execute("SELECT current_database(), current_user, pg_backend_pid()").fetchone()


def test_types_are_found_by_name(conn):
    from psycopg.types import TypeInfo

    info = TypeInfo.fetch(conn, "timestamptz")
    assert (info.oid, info.array_oid) == (1184, 1185)


@BOTH
@pytest.mark.parametrize("prepare", [True, None], ids=["prepared", "by itself"])
def test_an_insert_prepared_earlier_goes_to_the_table_of_that_name(conn, table, binary, prepare):
    name = table("a integer, b text")
    mark = "%b" if binary else "%t"
    insert = f"INSERT INTO {name} (a, b) VALUES ({mark}, {mark})"
    old = f"{name}_old"
    with psycopg.connect(autocommit=True) as other:
        # psycopg prepares by itself what comes for the sixth time.
        for number in range(8):
            conn.execute(insert, [number, "x"], prepare=prepare)
        other.execute(f"DROP TABLE {name}")
        with pytest.raises(psycopg.errors.UndefinedTable):
            conn.execute(insert, [1, "x"], prepare=prepare)
        other.execute(f"CREATE TABLE {name} (a integer, b text)")
        for number in range(3):
            assert conn.execute(insert, [number, "y"], prepare=prepare).rowcount == 1
        assert other.execute(f"SELECT count(*) FROM {name}").fetchone() == (3,)
        other.execute(f"ALTER TABLE {name} RENAME TO {old}")
        other.execute(f"CREATE TABLE {name} (b text, more date, a bigint)")
        conn.execute(insert, [7, "z"], prepare=prepare)
        assert other.execute(f"SELECT a, b, more FROM {name}").fetchall() == [(7, "z", None)]
        assert other.execute(f"SELECT count(*) FROM {old}").fetchone() == (3,)
        other.execute(f"DROP TABLE {old}")


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "made again"])
def test_a_copy_left_open_over_a_drop_is_an_error(conn, table, again):
    name = table("a integer")
    error = psycopg.errors.SerializationFailure if again else psycopg.errors.UndefinedTable
    with psycopg.connect(autocommit=True) as other:
        with pytest.raises(error):
            with conn.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                copy.write("1\n")
                other.execute(f"DROP TABLE {name}")
                if again:
                    other.execute(f"CREATE TABLE {name} (a integer)")
                copy.write("2\n")
        if again:
            assert other.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,)
