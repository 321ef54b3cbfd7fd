"""Dates before 1582-10-15, and NULL structs: the same rows in Stoa, Spark and PyIceberg, whoever wrote them."""

import datetime

import pytest
from engines import same_rows

DATES = ["0001-01-01", "1500-02-28", "1582-10-04", "1582-10-15", "1970-01-01"]


def check(stoa, spark, iceberg, table):
    texts = [row.d for row in spark.sql(f"SELECT CAST(d AS string) AS d FROM stoa.{table} ORDER BY id").collect()]
    assert texts == DATES
    for ask in (stoa.sql, stoa.server_sql):
        assert [row["d"] for row in ask(f"SELECT d FROM {table} ORDER BY id")] == DATES
    rows = iceberg.load_table(table).scan().to_arrow().sort_by("id").to_pylist()
    assert [row["d"] for row in rows] == [datetime.date.fromisoformat(date) for date in DATES]
    for number, date in enumerate(DATES):
        where = f"WHERE d = DATE '{date}'"
        same_rows(stoa.sql(f"SELECT id FROM {table} {where}"), [{"id": number}])


@pytest.mark.parametrize("writer", ["stoa", "spark"])
def test_dates_before_the_gregorian_calendar(stoa, spark, iceberg, name, writer):
    table = f"public.{name}"
    stoa.sql(f"CREATE TABLE {table} (id int, d date)")
    values = ", ".join(f"({number}, DATE '{date}')" for number, date in enumerate(DATES))
    if writer == "stoa":
        stoa.sql(f"INSERT INTO {table} VALUES {values}")
    else:
        spark.sql(f"INSERT INTO stoa.{table} VALUES {values}")
    check(stoa, spark, iceberg, table)


def test_fields_of_null_structs_are_found(stoa, spark, iceberg, name):
    table = f"public.{name}"
    stoa.sql(
        f"CREATE TABLE {table} (id int, s struct<f double>)",
        f"INSERT INTO {table} SELECT 1, NULL",
        f"INSERT INTO {table} SELECT 2, named_struct('f', 5.5)",
    )
    assert [row.id for row in spark.sql(f"SELECT id FROM stoa.{table} WHERE s.f IS NULL").collect()] == [1]
    rows = iceberg.load_table(table).scan(row_filter="s.f is null").to_arrow().to_pylist()
    assert [row["id"] for row in rows] == [1]
