"""adbc_ingest in all modes, its types, and what becomes of an ingest that fails."""

import concurrent.futures
import datetime
import decimal
import os
import urllib.request

import adbc_driver_manager
import pyarrow as pa
import pytest

from conftest import connect


def rows(start, count):
    ids = list(range(start, start + count))
    return pa.table({"id": ids, "word": [f"w{n}" for n in ids]})


def content(cursor, name):
    cursor.execute(f"SELECT count(*), min(id), max(id) FROM {name}")
    return cursor.fetchone()


def test_all_modes(cursor, name):
    with pytest.raises(adbc_driver_manager.Error) as missing:
        cursor.adbc_ingest(name, rows(0, 3), mode="append")
    assert missing.value.status_code == adbc_driver_manager.AdbcStatusCode.NOT_FOUND
    assert cursor.adbc_ingest(name, rows(0, 3), mode="create") == 3
    with pytest.raises(adbc_driver_manager.Error) as there:
        cursor.adbc_ingest(name, rows(0, 3), mode="create")
    assert there.value.status_code == adbc_driver_manager.AdbcStatusCode.ALREADY_EXISTS
    assert cursor.adbc_ingest(name, rows(3, 4), mode="append") == 4
    assert content(cursor, name) == (7, 0, 6)
    assert cursor.adbc_ingest(name, rows(7, 1), mode="create_append") == 1
    assert content(cursor, name) == (8, 0, 7)
    assert cursor.adbc_ingest(name, rows(100, 2), mode="replace") == 2
    assert content(cursor, name) == (2, 100, 101)
    other = pa.table({"n": [1.5, 2.5]})
    assert cursor.adbc_ingest(name, other, mode="replace") == 2
    cursor.execute(f"SELECT sum(n) FROM {name}")
    assert cursor.fetchone() == (4.0,)
    cursor.execute(f"DROP TABLE {name}")
    assert cursor.adbc_ingest(name, rows(0, 2), mode="create_append") == 2
    cursor.execute(f"DROP TABLE {name}")
    assert cursor.adbc_ingest(name, rows(0, 2), mode="replace") == 2


def test_a_schema_of_its_own(cursor, name):
    cursor.execute(f"CREATE SCHEMA s_{name}")
    cursor.adbc_ingest(
        name, rows(0, 2), mode="create", catalog_name="stoa", db_schema_name=f"s_{name}"
    )
    assert content(cursor, f"s_{name}.{name}") == (2, 0, 1)
    with pytest.raises(adbc_driver_manager.Error, match="catalog"):
        cursor.adbc_ingest(name, rows(0, 2), mode="append", catalog_name="elsewhere")
    with pytest.raises(adbc_driver_manager.Error, match="temporary"):
        cursor.adbc_ingest(name, rows(0, 2), mode="create", temporary=True)
    cursor.execute(f"DROP SCHEMA s_{name} CASCADE")


def test_types_come_back_as_they_went(cursor, name):
    utc = datetime.timezone.utc
    table = pa.table(
        {
            "truth": pa.array([True, None]),
            "small": pa.array([1, None], pa.int32()),
            "large": pa.array([1 << 60, None], pa.int64()),
            "real": pa.array([1.5, None], pa.float32()),
            "double": pa.array([0.1, None], pa.float64()),
            "money": pa.array([decimal.Decimal("12.34"), None], pa.decimal128(18, 2)),
            "text": pa.array(["ä", None]),
            "raw": pa.array([b"\x00\xff", None], pa.binary()),
            "day": pa.array([datetime.date(2025, 2, 3), None]),
            "at": pa.array([datetime.datetime(2025, 2, 3, 4, 5, 6, 789), None], pa.timestamp("us")),
            "moment": pa.array(
                [datetime.datetime(2025, 2, 3, 4, 5, 6, tzinfo=utc), None], pa.timestamp("us", "UTC")
            ),
            "list": pa.array([[1, 2], None], pa.list_(pa.int64())),
        }
    )
    cursor.adbc_ingest(name, table, mode="create")
    cursor.execute(f"SELECT * FROM {name} ORDER BY large")
    back = cursor.fetch_arrow_table()
    assert back.column_names == table.column_names
    assert back.to_pylist() == table.to_pylist()


def test_other_types_become_the_tables(cursor, name):
    cursor.execute(f"CREATE TABLE {name} (id bigint NOT NULL, word text, day date)")
    table = pa.table(
        {
            "day": pa.array(["2025-01-31"]),
            "word": pa.array(["x"]).dictionary_encode(),
            "id": pa.array([7], pa.uint8()),
        }
    )
    assert cursor.adbc_ingest(name, table, mode="append") == 1
    cursor.execute(f"SELECT * FROM {name}")
    assert cursor.fetchone() == (7, "x", datetime.date(2025, 1, 31))
    wrong = table.set_column(0, "day", pa.array(["yesterday"]))
    with pytest.raises(adbc_driver_manager.Error, match='row 1, column "day".*yesterday'):
        cursor.adbc_ingest(name, wrong, mode="append")
    with pytest.raises(adbc_driver_manager.Error, match='no column "day"'):
        cursor.adbc_ingest(name, table.drop_columns(["day"]), mode="append")


def test_a_large_stream_is_one_commit(cursor, name):
    batches = rows(0, 50_000).to_batches()[0]

    def many():
        for n in range(40):
            yield pa.record_batch({"id": pa.array(range(n * 50_000, (n + 1) * 50_000)), "word": batches["word"]})

    reader = pa.RecordBatchReader.from_batches(rows(0, 1).schema, many())
    assert cursor.adbc_ingest(name, reader, mode="create") == 2_000_000
    cursor.execute(f"SELECT count(*), count(DISTINCT id) FROM {name}")
    assert cursor.fetchone() == (2_000_000, 2_000_000)


def test_a_source_that_fails_leaves_nothing(cursor, name):
    cursor.adbc_ingest(name, rows(0, 1), mode="create")

    def failing():
        yield from rows(1, 1000).to_batches()
        raise ValueError("the source is gone")

    for _ in range(5):
        reader = pa.RecordBatchReader.from_batches(rows(0, 1).schema, failing())
        with pytest.raises((adbc_driver_manager.Error, ValueError)):
            cursor.adbc_ingest(name, reader, mode="append")
    assert content(cursor, name) == (1, 0, 0)


def test_many_writers_at_once(cursor, name):
    cursor.execute(f"CREATE TABLE {name} (id bigint, word text)")

    def write(writer):
        with connect() as connection, connection.cursor() as own:
            return sum(
                own.adbc_ingest(name, rows(writer * 10_000 + n * 100, 100), mode="append")
                for n in range(20)
            )

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) == 16_000
    cursor.execute(f"SELECT count(*), count(DISTINCT id) FROM {name}")
    assert cursor.fetchone() == (16_000, 16_000)


def test_tables_of_cells_take_no_rows(conn, cursor, name):
    port = os.environ["STOA_HTTP_PORT"]
    statement = f"CREATE TABLE {name} (c); INSERT INTO {name} VALUES ('r', 'c:q', 'v');"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/hql", data=statement.encode())
    urllib.request.urlopen(request).read()
    assert conn.adbc_get_table_schema(name).names == ["row", "c"]
    cursor.execute(f"SELECT row FROM {name}")
    assert cursor.fetchall() == [("r",)]
    for mode in ["append", "replace", "create_append"]:
        with pytest.raises(adbc_driver_manager.Error, match="HQL.*\n.*\n?.*42809"):
            cursor.adbc_ingest(name, rows(0, 1), mode=mode)
    cursor.execute(f"SELECT count(*) FROM {name}")
    assert cursor.fetchone() == (1,)


def test_rows_beyond_the_declared_types_are_refused(cursor, name):
    cursor.execute(f"CREATE TABLE {name} (v varchar(3), s smallint)")
    for mode in ["append", "replace", "create_append"]:
        for bad, what in [
            (pa.table({"v": ["abc", "abcd"], "s": pa.array([1, 2], pa.int32())}), "character varying"),
            (pa.table({"v": ["abc"], "s": pa.array([40000], pa.int32())}), "smallint"),
        ]:
            with pytest.raises(adbc_driver_manager.Error, match=what):
                cursor.adbc_ingest(name, bad, mode=mode)
    good = pa.table({"v": ["abc"], "s": pa.array([1], pa.int32())})
    assert cursor.adbc_ingest(name, good, mode="append") == 1
    assert cursor.adbc_ingest(name, good, mode="replace") == 1
    with pytest.raises(adbc_driver_manager.Error, match="character varying"):
        cursor.execute(f"INSERT INTO {name} VALUES ('abcd', 1)")
    cursor.execute(f"SELECT v, s FROM {name}")
    assert cursor.fetchall() == [("abc", 1)]
