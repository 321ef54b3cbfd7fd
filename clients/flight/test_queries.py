"""Queries: rows, types, parameters, errors, large results, cancelling."""

import datetime
import decimal
import threading
import time

import adbc_driver_manager
import pyarrow as pa
import pytest

from conftest import connect


def test_rows_and_their_types(cursor):
    cursor.execute(
        "SELECT 1 AS i, 2.50 AS d, 'ä' AS t, true AS b, NULL AS n, DATE '2025-01-31' AS day,"
        " TIMESTAMP '2025-01-31 12:30:00.123456' AS at, CAST('x' AS bytea) AS raw,"
        " [1, 2] AS list"
    )
    row = cursor.fetchone()
    assert row[0:5] == (1, decimal.Decimal("2.50"), "ä", True, None)
    assert row[5] == datetime.date(2025, 1, 31)
    assert row[6] == datetime.datetime(2025, 1, 31, 12, 30, 0, 123456)
    assert row[7:] == (b"x", [1, 2])
    assert [column[0] for column in cursor.description] == "i d t b n day at raw list".split()


def test_definitions_and_changes(cursor, name):
    cursor.execute(f"CREATE TABLE {name} (id bigint, word text)")
    cursor.execute(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    cursor.execute(f"UPDATE {name} SET word = 'z' WHERE id = 2")
    cursor.execute(f"SELECT * FROM {name} ORDER BY id")
    assert cursor.fetchall() == [(1, "a"), (2, "z")]
    cursor.execute(f"DELETE FROM {name}")
    cursor.execute(f"SELECT count(*) FROM {name}")
    assert cursor.fetchone() == (0,)


def test_parameters(cursor, name):
    cursor.execute(f"CREATE TABLE {name} (id bigint, word text, day date)")
    rows = [(n, f"w{n}", datetime.date(2025, 1, n)) for n in range(1, 6)]
    cursor.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    assert cursor.rowcount == 5
    cursor.execute(f"SELECT * FROM {name} WHERE id > ? AND day < ? ORDER BY id", (2, rows[4][2]))
    assert cursor.fetchall() == rows[2:4]
    cursor.execute(f"SELECT word FROM {name} WHERE id = $1", (5,))
    assert cursor.fetchall() == [("w5",)]
    with pytest.raises(adbc_driver_manager.Error, match="parameters"):
        cursor.execute(f"SELECT word FROM {name} WHERE id = ?", (5, 6))


def test_errors_say_what_and_what_to_do(cursor):
    with pytest.raises(adbc_driver_manager.ProgrammingError) as caught:
        cursor.execute("SELECT * FROM nowhere")
        cursor.fetchall()
    assert caught.value.status_code == adbc_driver_manager.AdbcStatusCode.NOT_FOUND
    text = str(caught.value)
    assert "nowhere" in text and "HINT: SHOW TABLES" in text and "SQLSTATE: 42P01" in text
    with pytest.raises(adbc_driver_manager.Error, match="syntax error"):
        cursor.execute("SELEC 1")
    with pytest.raises(adbc_driver_manager.Error, match="division by zero"):
        cursor.execute("SELECT 1 / (n - 5) FROM generate_series(1, 10) AS t(n)")
        cursor.fetchall()


def test_a_large_result_streams(cursor):
    rows = 3_000_000
    cursor.execute(f"SELECT n, n % 1000 AS m, 'row ' || n AS t FROM generate_series(1, {rows}) AS s(n)")
    reader = cursor.fetch_record_batch()
    count = total = 0
    for batch in reader:
        count += batch.num_rows
        total += pa.compute.sum(batch.column(0)).as_py()
    assert (count, total) == (rows, rows * (rows + 1) // 2)


def test_a_query_is_cancelled():
    endless = "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 8"
    with connect() as connection, connection.cursor() as cursor:
        failed = []

        def run():
            try:
                cursor.execute(endless)
                cursor.fetchall()
            except adbc_driver_manager.Error as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        # A cancel that comes before the query would not reach it.
        deadline = time.monotonic() + 30
        while thread.is_alive() and time.monotonic() < deadline:
            cursor.adbc_cancel()
            thread.join(0.2)
        assert not thread.is_alive(), "the query goes on"
        assert len(failed) == 1
        assert failed[0].status_code == adbc_driver_manager.AdbcStatusCode.CANCELLED


def test_the_schema_is_told_without_running(cursor):
    schema = cursor.adbc_execute_schema("SELECT 1 AS a, 'x' AS b FROM generate_series(1, 100000000000)")
    assert schema.names == ["a", "b"]


def test_settings_stay_in_their_session(name):
    with connect() as one, connect() as two:
        with one.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA {name}")
            cursor.execute(f"SET search_path = {name}")
            cursor.execute("SHOW search_path")
            assert cursor.fetchone() == (name,)
            assert one.adbc_current_db_schema == name
        with two.cursor() as cursor:
            cursor.execute("SHOW search_path")
            assert cursor.fetchone() == ("public",)
            cursor.execute(f"DROP SCHEMA {name}")


def test_users_and_passwords():
    with connect(db_kwargs={"username": "me", "password": "any"}) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)
            cursor.execute("SET search_path = information_schema")
            cursor.execute("SHOW search_path")
            assert cursor.fetchone() == ("information_schema",)
