"""Row groups of Parquet and stripes of ORC that statistics rule out are not read; answers are those of DuckDB.

STOA_PRUNING_CONDITIONS is the number of random conditions for each format.
"""

import datetime
import decimal
import json
import os
import random

import duckdb
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from test_external import start, store  # noqa: F401

ROWS, GROUP = 40_000, 2_000
CONDITIONS = int(os.environ.get("STOA_PRUNING_CONDITIONS", 150))
DAY = datetime.date(2024, 1, 1)
MOMENT = datetime.datetime(1969, 12, 30)
COLUMNS = {
    "id": "bigint", "small": "int", "f": "double precision", "name": "text", "day": "date", "price": "numeric(12,2)",
    "moment": "timestamp", "flag": "boolean", "short": "varchar(3)", "tiny": "smallint", "narrow": "int",
}  # fmt: skip


def generated():
    """Values that ascend roughly, so that row groups have ranges of their own; each sixteenth is NULL, and whole groups."""
    chosen = random.Random(7)

    def column(value, type):
        is_null = lambda n: chosen.random() < 1 / 16 or (n // GROUP) % 9 == 8
        return pa.array([None if is_null(n) else value(n + chosen.randint(0, 500)) for n in range(ROWS)], type)

    return pa.table(
        {
            "id": column(lambda n: n * 1_000_000_007 - 10**12, pa.int64()),
            "small": column(lambda n: n - 20_000, pa.int32()),
            "f": column(lambda n: (n - 20_000) / 7, pa.float64()),
            "name": column(lambda n: f"n{n:07}ü" + "x" * (n % 90), pa.string()),
            "day": column(lambda n: DAY + datetime.timedelta(days=n // 100 - 200), pa.date32()),
            "price": column(lambda n: decimal.Decimal(n - 20_000) / 4, pa.decimal128(12, 2)),
            "moment": column(lambda n: MOMENT + datetime.timedelta(seconds=n * 9 % 10**6, microseconds=n), pa.timestamp("us")),
            "flag": column(lambda n: n // GROUP % 3 == 0, pa.bool_()),
            "tiny": column(lambda n: n - 20_000, pa.int16()),
            # Some do not fit the table's type, and are NULL.
            "narrow": column(lambda n: n * 100_000, pa.int64()),
            "short": column(lambda n: f"{n // 100:03}abc", pa.string()),
        }
    )


@pytest.fixture(scope="module")
def table():
    return generated()


@pytest.fixture
def asked(warehouse, store, bucket, table, request):  # noqa: F811
    """A server with the rows as an external table, in files of a format; DuckDB with the same rows."""
    kind = request.param
    half = ROWS // 2
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        with store.open_output_stream(f"{bucket}/ext/part-{number}") as file:
            if kind == "parquet":
                pq.write_table(part, file, row_group_size=GROUP)
            else:
                orc.write_table(part, file, stripe_size=64 << 10, row_index_stride=GROUP)
    server = start(warehouse)
    listed = ", ".join(f"{name} {of}" for name, of in COLUMNS.items())
    server.sql(f"CREATE EXTERNAL TABLE t ({listed}) STORED AS {kind} LOCATION 's3://{bucket}/ext'")
    duck = duckdb.connect()
    # varchar(3) cuts what is longer, as in Hive.
    duck.register("files", table)
    duck.execute("CREATE TABLE t AS SELECT * REPLACE (short[:3] AS short, TRY_CAST(narrow AS INTEGER) AS narrow) FROM files")
    return server, duck


def literal(chosen, table, name):
    value = None
    while value is None or name == "narrow" and value >= 2**31:
        value = table[name][chosen.randrange(ROWS)].as_py()
    match COLUMNS[name]:
        case "text" | "varchar(3)":
            return f"'{value if name == 'name' else value[:3]}'"
        case "date":
            return f"DATE '{value}'"
        case "timestamp":
            return f"TIMESTAMP '{value}'"
        case _:
            return str(value).lower()


def condition(chosen, table):
    name = chosen.choice(list(COLUMNS))
    value = lambda: literal(chosen, table, name)
    kinds = ["=", "<", "<=", ">", ">=", "<>", "in", "between", "null", "not null", "and", "or", "not"]
    match chosen.choice(kinds):
        case "in":
            return f"{name} IN ({value()}, {value()})"
        case "between":
            return f"{name} BETWEEN {value()} AND {value()}"
        case "null":
            return f"{name} IS NULL"
        case "not null":
            return f"{name} IS NOT NULL"
        case "and":
            return f"({condition(chosen, table)} AND {condition(chosen, table)})"
        case "or":
            return f"({condition(chosen, table)} OR {condition(chosen, table)})"
        case "not":
            return f"NOT ({condition(chosen, table)})"
        case op:
            return f"{name} {op} {value()}"


QUERY = "SELECT count(*) AS n, count(id) AS ids, sum(small) AS s, min(name) AS name FROM t WHERE "


def ours(server, where):
    [row] = server.sql(QUERY + where)
    return [int(row["n"]), int(row["ids"]), None if row["s"] is None else int(row["s"]), row["name"]]


def bytes_read(server, where):
    rows = server.sql("SELECT sql, bytes_read FROM system.queries WHERE state = 'finished'")
    [found] = {int(row["bytes_read"]) for row in rows if row["sql"] == QUERY + where}
    return found


@pytest.mark.parametrize("asked", ["parquet", "orc"], indirect=True)
def test_answers_are_those_of_duckdb(asked, table):
    server, duck = asked
    chosen = random.Random(11)
    for _ in range(CONDITIONS):
        where = condition(chosen, table)
        expected = list(duck.execute(QUERY + where).fetchone())
        assert ours(server, where) == expected, where


@pytest.mark.parametrize("asked", ["parquet", "orc"], indirect=True)
def test_few_bytes_are_read_for_few_rows(asked, table, capsys):
    server, duck = asked
    total = None
    for where in ("true", "small BETWEEN 1000 AND 1500", "name = 'n0030000ü'", "day = DATE '2024-03-01'", "id < -999999999999999", "moment IS NULL AND flag"):
        assert ours(server, where) == list(duck.execute(QUERY + where).fetchone())
        read = bytes_read(server, where)
        total = total or read
        print(f"{where}: {read} of {total} bytes")
        if where in ("small BETWEEN 1000 AND 1500", "name = 'n0030000ü'"):
            assert 0 < read < total / 4, (where, read, total)
    plan = json.dumps(server.sql("EXPLAIN ANALYZE " + QUERY + "small BETWEEN 1000 AND 1500"))
    assert "stripes_pruned" in plan and "bytes_read" in plan, plan
