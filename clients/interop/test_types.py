"""Every column type with its edge values: written by one engine, read by the others."""

import datetime
import math

import pytest
from engines import as_kind, plain, rows_of, same_rows
from pyarrow import orc

MICROSECOND = datetime.timedelta(microseconds=1)

# Column name, type in Stoa's SQL, type in Spark's SQL, literals both understand.
COLUMNS = [
    ("flag", "boolean", "boolean", ["true", "false"]),
    ("small", "int", "int", ["-2147483648", "2147483647", "0"]),
    ("large", "bigint", "bigint", ["-9223372036854775807", "9223372036854775807", "0"]),
    ("ratio", "real", "float", ["1.5", "-0.25", "0.0"]),
    ("value", "double", "double", ["1.7976931348623157e308", "-2.2250738585072014e-308", "0.1"]),
    ("price", "decimal(9, 2)", "decimal(9, 2)", ["'-9999999.99'", "'9999999.99'", "'0.01'"]),
    ("wide", "decimal(18, 4)", "decimal(18, 4)", ["'-99999999999999.9999'", "'99999999999999.9999'"]),
    ("total", "decimal(38, 10)", "decimal(38, 10)", ["'-1234567890123456789012345678.0123456789'", "'0.0000000001'"]),
    ("day", "date", "date", ["DATE '1582-10-15'", "DATE '1969-12-31'", "DATE '9999-12-31'"]),
    (
        "seen",
        "timestamp",
        "timestamp_ntz",
        [
            # Not in the last second before 1970: ORC's Java library reads fractions there a second late.
            "TIMESTAMP '1969-12-31 23:59:58.999999'",
            "TIMESTAMP '2015-03-29 02:30:00'",
            "TIMESTAMP '2038-01-19 03:14:08.000001'",
        ],
    ),
    (
        "at",
        "timestamptz",
        "timestamp",
        # Texts: the standard's TIMESTAMP literal has no zone, and Stoa, as PostgreSQL, ignores one there.
        ["'1970-01-01 00:00:00.000001+00:00'", "'2026-11-21 12:34:56.789012+09:00'"],
    ),
    ("text", "varchar", "string", ["''", "'plain'", "'日本語 – ünïcode'", "'tab\tand \"quotes\", comma'"]),
    ("raw", "bytea", "binary", ["X'00ff10'", "X'deadbeef'"]),
]


def rows():
    """SQL rows: an id and one literal per column, shorter columns padded with NULL; one row all NULL."""
    most = max(len(literals) for _, _, _, literals in COLUMNS)
    for row in range(most):
        yield [str(row), *(literals[row] if row < len(literals) else "NULL" for _, _, _, literals in COLUMNS)]
    yield [str(most), *("NULL" for _ in COLUMNS)]


def insert(table, casts):
    selects = []
    for row in rows():
        terms = [row[0], *(f"CAST({literal} AS {kind})" for literal, kind in zip(row[1:], casts))]
        selects.append("SELECT " + ", ".join(terms))
    return f"INSERT INTO {table} " + " UNION ALL ".join(selects)


def create(table, kinds, ending=""):
    columns = ", ".join(f"{column[0]} {kind}" for column, kind in zip(COLUMNS, kinds))
    return f"CREATE TABLE {table} (id int, {columns}) {ending}"


@pytest.fixture(scope="module")
def by_stoa(stoa):
    kinds = [column[1] for column in COLUMNS]
    stoa.sql(create("public.types_by_stoa", kinds), insert("public.types_by_stoa", kinds))
    return "public.types_by_stoa"


@pytest.fixture(scope="module")
def by_spark(stoa, spark):
    kinds = [column[2] for column in COLUMNS]
    spark.sql("CREATE NAMESPACE IF NOT EXISTS stoa.public")
    spark.sql(create("stoa.public.types_by_spark", kinds, "USING iceberg TBLPROPERTIES ('write.format.default'='orc')"))
    spark.sql(insert("stoa.public.types_by_spark", kinds))
    return "public.types_by_spark"


@pytest.mark.parametrize("column", [column[0] for column in COLUMNS])
def test_spark_reads_what_stoa_wrote(stoa, spark, by_stoa, column):
    query = f"SELECT id, {column} FROM {{}} ORDER BY id"
    theirs = rows_of(spark.sql(query.format(f"stoa.{by_stoa}")))
    same_rows(stoa.sql(query.format(by_stoa)), theirs)
    nulls = sum(row[column] is None for row in theirs)
    assert nulls == len(theirs) - next(len(c[3]) for c in COLUMNS if c[0] == column)


@pytest.mark.parametrize("column", [column[0] for column in COLUMNS])
def test_stoa_reads_what_spark_wrote(stoa, spark, by_spark, column):
    query = f"SELECT id, {column} FROM {{}} ORDER BY id"
    same_rows(stoa.sql(query.format(by_spark)), rows_of(spark.sql(query.format(f"stoa.{by_spark}"))))


@pytest.mark.parametrize("column", [column[0] for column in COLUMNS])
def test_both_wrote_the_same_values(spark, by_stoa, by_spark, column):
    query = f"SELECT id, {column} FROM stoa.{{}} ORDER BY id"
    assert rows_of(spark.sql(query.format(by_stoa))) == rows_of(spark.sql(query.format(by_spark)))


@pytest.mark.parametrize("column", [column[0] for column in COLUMNS])
def test_pyiceberg_reads_what_stoa_wrote(stoa, iceberg, by_stoa, column):
    arrow = iceberg.load_table(by_stoa).scan(selected_fields=("id", column)).to_arrow().sort_by("id")
    same_rows(stoa.sql(f"SELECT id, {column} FROM {by_stoa} ORDER BY id"), rows_of(arrow))


@pytest.mark.parametrize("column", [column[0] for column in COLUMNS])
def test_a_filter_finds_each_value(stoa, spark, by_stoa, by_spark, column):
    """Statistics of either writer must not hide a row from either reader."""
    kind, literals = next((c[1], c[3]) for c in COLUMNS if c[0] == column)
    spark_kind = next(c[2] for c in COLUMNS if c[0] == column)
    for row, literal in enumerate(literals):
        for table in (by_stoa, by_spark):
            ours = stoa.sql(f"SELECT id FROM {table} WHERE {column} = CAST({literal} AS {kind})")
            assert [r["id"] for r in ours] == [row], (table, literal)
        theirs = rows_of(spark.sql(f"SELECT id FROM stoa.{by_stoa} WHERE {column} = CAST({literal} AS {spark_kind})"))
        assert [r["id"] for r in theirs] == [row], literal


def test_not_a_number_and_infinity(stoa, spark, name):
    stoa.sql(
        f"CREATE TABLE public.{name} (id int, value double)",
        f"INSERT INTO public.{name} VALUES (1, CAST('NaN' AS double)), (2, CAST('Infinity' AS double)), "
        "(3, CAST('-Infinity' AS double)), (4, -0.0)",
    )
    theirs = [row["value"] for row in rows_of(spark.sql(f"SELECT value FROM stoa.public.{name} ORDER BY id"))]
    assert math.isnan(theirs[0]) and theirs[1:3] == [math.inf, -math.inf] and theirs[3] == 0
    assert spark.sql(f"SELECT id FROM stoa.public.{name} WHERE value > 1e300").count() == 2  # NaN is largest in Spark


def test_nested_columns_by_spark(stoa, spark, name):
    spark.sql(
        f"CREATE TABLE stoa.public.{name} (id int, tags array<string>, shares map<string, bigint>, "
        "place struct<city: string, spot: struct<x: double, y: double>>) USING iceberg "
        "TBLPROPERTIES ('write.format.default'='orc')"
    )
    spark.sql(
        f"INSERT INTO stoa.public.{name} VALUES "
        "(1, array('a', NULL, 'c'), map('k', 1L, 'l', 2L), named_struct('city', 'Tokyo', 'spot', named_struct('x', 1.5D, 'y', 2.5D))), "
        "(2, array(), map(), NULL), (3, NULL, NULL, named_struct('city', NULL, 'spot', NULL))"
    )
    theirs = rows_of(spark.sql(f"SELECT id, tags, place.city AS city, place.spot.y AS y FROM stoa.public.{name} ORDER BY id"))
    ours = stoa.sql(f"SELECT id, tags, place['city'] AS city, place['spot']['y'] AS y FROM public.{name} ORDER BY id")
    same_rows(ours, theirs)
    ours = stoa.sql(f"SELECT id, shares FROM public.{name} ORDER BY id")
    theirs = rows_of(spark.sql(f"SELECT id, shares FROM stoa.public.{name} ORDER BY id"))
    assert [as_kind(row["shares"], theirs[0]["shares"]) for row in ours] == [plain(row["shares"]) for row in theirs]


def test_nested_columns_by_stoa(stoa, spark, name):
    stoa.sql(
        f"CREATE TABLE public.{name} (id int, tags varchar[], place struct<city varchar, x double>)",
        f"INSERT INTO public.{name} SELECT 1, make_array('a', NULL, 'c'), named_struct('city', 'Tokyo', 'x', 1.5)",
        f"INSERT INTO public.{name} SELECT 2, NULL, NULL",
    )
    theirs = rows_of(spark.sql(f"SELECT id, tags, place FROM stoa.public.{name} ORDER BY id"))
    assert theirs[0]["tags"] == ["a", None, "c"] and theirs[0]["place"].asDict() == {"city": "Tokyo", "x": 1.5}
    assert theirs[1]["tags"] is None and theirs[1]["place"] is None


def test_times_of_the_day(stoa, iceberg, name):
    """Spark has no such type; in ORC they are microseconds since midnight, marked as the specification says."""
    stoa.sql(
        f"CREATE TABLE public.{name} (id int, at time)",
        f"INSERT INTO public.{name} VALUES (1, '00:00'), (2, '10:11:12.123456'), (3, NULL), (4, '23:59:59.999999')",
        f"FLUSH TABLE public.{name}",
    )
    table = iceberg.load_table(f"public.{name}")
    assert str(table.schema().find_field("at").field_type) == "time"
    midnight = datetime.datetime.min
    expected = [0, 36_672_123_456, None, 86_399_999_999]
    [task] = table.scan().plan_files()
    with table.io.new_input(task.file.file_path).open() as file:
        stored = orc.ORCFile(file).read().sort_by("id")["at"].to_pylist()
    assert [(midnight.combine(midnight, v) - midnight) // MICROSECOND if isinstance(v, datetime.time) else v for v in stored] == expected
    bounds = (task.file.lower_bounds[2], task.file.upper_bounds[2])
    assert [int.from_bytes(bound, "little") for bound in bounds] == [0, 86_399_999_999]
