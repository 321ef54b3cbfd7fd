"""psqlodbc under unixODBC: values, server-side statements, cursors, and the catalog as BI tools read it."""

import datetime as dt
import os
from decimal import Decimal

import pytest

pyodbc = pytest.importorskip("pyodbc")
DRIVER = "PostgreSQL Unicode"

if DRIVER not in pyodbc.drivers():
    pytest.skip("psqlodbc is not installed (package odbc-postgresql)", allow_module_level=True)

# As drivers come, and as BI tools set them.
OPTIONS = {
    "as it comes": "",
    "statements on the client": "UseServerSidePrepare=0",
    "cursors": "UseDeclareFetch=1;Fetch=7",
    "odd names": "BoolsAsChar=0;TextAsLongVarchar=0;ByteaAsLongVarBinary=1",
}


def connect(options=""):
    host, port = os.environ["PGHOST"], os.environ["PGPORT"]
    address = f"DRIVER={{{DRIVER}}};SERVER={host};PORT={port};DATABASE=stoa;UID=stoa;{options}"
    return pyodbc.connect(address, autocommit=True)


@pytest.fixture(params=OPTIONS.values(), ids=OPTIONS.keys())
def odbc(request):
    connection = connect(request.param)
    yield connection
    connection.close()


def test_values_go_there_and_back(odbc, table):
    name = table(
        "l bigint, i int, d double precision, n numeric(12, 2), t text, day date, at timestamp, raw bytea"
    )
    row = (2**40, 7, 0.5, Decimal("12.50"), "it's \\ ü", dt.date(2026, 1, 2),
           dt.datetime(2026, 1, 2, 3, 4, 5, 6000), b"\x00\xff")  # fmt: skip
    cursor = odbc.cursor()
    cursor.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [row, row])
    cursor.execute(f"INSERT INTO {name} (l) VALUES (?)", 1)
    rows = cursor.execute(f"SELECT * FROM {name} WHERE i = ? AND t = ?", 7, row[4]).fetchall()
    assert [tuple(found) for found in rows] == [row, row]
    assert cursor.execute(f"SELECT * FROM {name} WHERE l = ?", 1).fetchone()[1:] == (None,) * 7
    assert cursor.execute(f"DELETE FROM {name} WHERE i = ?", 7).rowcount == 2


def test_many_rows_and_transactions(odbc, table):
    name = table("n bigint")
    odbc.autocommit = False
    cursor = odbc.cursor()
    cursor.execute(f"INSERT INTO {name} SELECT n FROM generate_series(1, 100) s (n)")
    numbers = [n for (n,) in cursor.execute(f"SELECT n FROM {name} ORDER BY n")]
    assert numbers == list(range(1, 101))
    odbc.rollback()
    assert cursor.execute(f"SELECT count(*) FROM {name}").fetchone()[0] == 0
    odbc.commit()


def test_an_error_leaves_the_connection_usable(odbc):
    with pytest.raises(pyodbc.Error) as raised:
        odbc.execute("SELECT * FROM nothing")
    assert raised.value.args[0] in ("42P01", "42S02")
    with pytest.raises(pyodbc.Error):
        odbc.execute("SELECT 1 / 0").fetchall()
    assert odbc.execute("SELECT 5").fetchone()[0] == 5


def test_the_catalog_is_told(odbc, table):
    name = table("id bigint NOT NULL, price decimal(10, 2), note text, PRIMARY KEY (id)")
    cursor = odbc.cursor()
    assert name in {row.table_name for row in cursor.tables(schema="public", tableType="TABLE")}
    assert "public" in {row[1] for row in cursor.tables(schema="%", catalog="", table="")} | {"public"}
    columns = list(cursor.columns(table=name))
    told = [(c.column_name, c.type_name, c.column_size, c.decimal_digits, c.nullable) for c in columns]
    assert [column[:2] for column in told] == [("id", "int8"), ("price", "numeric"), ("note", "text")]
    assert told[1][2:4] == (10, 2) and (told[0][4], told[2][4]) == (0, 1)
    keys = [(row.column_name, row.key_seq) for row in cursor.primaryKeys(table=name)]
    assert keys == [("id", 1)]
    indexes = [(row[5], row[8]) for row in cursor.statistics(table=name)]
    assert indexes == [(f"{name}_pkey", "id")]
    assert len(list(cursor.getTypeInfo())) > 10
    for asked in (
        cursor.foreignKeys(table=name), cursor.procedures(), cursor.rowIdColumns(table=name),
    ):  # fmt: skip
        list(asked)
