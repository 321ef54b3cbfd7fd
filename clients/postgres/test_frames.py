"""Drivers that fetch whole frames in PostgreSQL's binary COPY: connectorx, ADBC's PostgreSQL driver, polars."""

import os

import adbc_driver_postgresql.dbapi as adbc
import connectorx
import polars
import pyarrow
import pytest

ROWS = 1000


@pytest.fixture
def url():
    return f"postgresql://stoa@{os.environ['PGHOST']}:{os.environ['PGPORT']}/stoa"


@pytest.fixture
def filled(conn, table):
    name = table(
        "day date, name text, clicks bigint, cost numeric(12,2), ts timestamp, tz timestamptz, ok boolean, "
        "d double precision, r real, i int"
    )
    conn.execute(
        f"INSERT INTO {name} SELECT DATE '2026-01-01' + n::int, 'n' || n, n, n * 1.5, TIMESTAMP '2026-01-01 01:02:03', "
        f"TIMESTAMPTZ '2026-01-01 01:02:03+00', n % 2 = 0, n / 4.0, 1.5, n::int FROM generate_series(1, {ROWS}) AS s(n)"
    )
    return name


@pytest.mark.parametrize("protocol", ["binary", "csv", "cursor", "simple"])
def test_connectorx(url, filled, protocol):
    read = connectorx.read_sql(url, f"SELECT * FROM {filled} ORDER BY clicks", return_type="arrow", protocol=protocol)
    assert read.num_rows == ROWS
    assert read.column("clicks").to_pylist() == list(range(1, ROWS + 1))
    assert read.column("name").to_pylist()[:2] == ["n1", "n2"]


def test_connectorx_in_parts(url, filled):
    query = f"SELECT clicks, cost FROM {filled}"
    read = connectorx.read_sql(url, query, return_type="arrow", partition_on="clicks", partition_num=3)
    assert sorted(read.column("clicks").to_pylist()) == list(range(1, ROWS + 1))


@pytest.mark.parametrize("engine", ["connectorx", "adbc"])
def test_polars(url, filled, engine):
    query = f"SELECT ok, sum(clicks), count(*) FROM {filled} GROUP BY ok ORDER BY ok"
    frame = polars.read_database_uri(query, url, engine=engine)
    assert frame.columns == ["ok", "sum", "count"]
    assert frame["sum"].to_list() == [250_000, 250_500]


def test_adbc(url, filled):
    with adbc.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {filled} ORDER BY clicks LIMIT 3")
        read = cursor.fetch_arrow_table()
        assert read.column("d").to_pylist() == [0.25, 0.5, 0.75]
        assert [str(day) for day in read.column("day").to_pylist()] == ["2026-01-02", "2026-01-03", "2026-01-04"]
        cursor.execute("SELECT $1::bigint + 1", (3,))
        assert cursor.fetchall() == [(4,)]


def test_adbc_ingests(url, conn):
    rows = pyarrow.table({"a": [1, 2, 3], "b": ["x", "y", None], "c": [1.5, 2.5, None]})
    try:
        with adbc.connect(url) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("adbc_rows", rows, mode="create")
            connection.commit()
        answer = conn.execute("SELECT count(*), sum(a), count(b), sum(c) FROM adbc_rows").fetchone()
        assert answer == (3, 6, 2, 4.0)
    finally:
        conn.execute("DROP TABLE IF EXISTS adbc_rows")


def test_adbc_tells_a_tables_schema(url, filled):
    with adbc.connect(url) as connection:
        schema = connection.adbc_get_table_schema(filled)
        assert schema.field("clicks").type == pyarrow.int64()
