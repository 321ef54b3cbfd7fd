"""Public trip data: what Stoa loads and sums equals what DuckDB reads from the same file."""

import re

import pytest
from engines import StoaError, same_rows

MONTHLY = (
    "SELECT base, month, sum(trips) AS trips, sum(vehicles) AS vehicles, count(*) AS days FROM "
    "(SELECT base, extract(month FROM day) AS month, trips, vehicles FROM {}) AS daily "
    "GROUP BY base, month ORDER BY base, month"
)


def typed(rows):
    return [{k: v if k == "base" or v is None else int(v) for k, v in row.items()} for row in rows]


@pytest.fixture(scope="module")
def by_duckdb(shared_data):
    import duckdb

    file = shared_data / "fhv-daily-2015.csv"
    if not file.exists():
        pytest.skip(f"{file} is not here")
    return file, typed(duckdb.sql(MONTHLY.format(f"read_csv('{file}', header = true)")).to_arrow_table().to_pylist())


def test_sums_per_base_and_month(stoa, by_duckdb):
    file, expected = by_duckdb
    stoa.run("load", str(file), "--into", "public.fhv", "--create", "--warehouse", stoa.warehouse)
    assert len(expected) > 900
    assert typed(stoa.sql(MONTHLY.format("public.fhv"))) == expected
    assert typed(stoa.server_sql(MONTHLY.format("public.fhv"))) == expected


def test_spark_and_pyiceberg_read_the_loaded_file(stoa, spark, iceberg, by_duckdb):
    _, expected = by_duckdb
    ours = [row.asDict() for row in spark.sql(MONTHLY.format("stoa.public.fhv")).collect()]
    assert typed(ours) == expected
    arrow = iceberg.load_table("public.fhv").scan(row_filter="base == 'B02512'").to_arrow()
    rows = stoa.sql("SELECT * FROM public.fhv WHERE base = 'B02512' ORDER BY day")
    same_rows(rows, arrow.sort_by("day").to_pylist())


def test_the_raw_file_loads_with_options(stoa, shared_data, by_duckdb):
    """Carriage returns, titles above the header, thousands separators, `-` for NULL, American dates."""
    stoa.sql(
        "CREATE TABLE public.fhv_raw (base varchar, base_name varchar, day date, trips bigint, vehicles bigint)"
    )
    stoa.run(
        "load",
        str(shared_data / "fhv-daily-2015-raw.csv"),
        "--into", "public.fhv_raw",
        "--warehouse", stoa.warehouse,
        "--skip-lines", "5",
        "--columns", "-,base,base_name,-,day,trips,vehicles",
        "--skip-empty-rows", "true",
        "--trim", "true",
        "--thousands-separator", ",",
        "--null-text", "-,",
        "--date-format", "%m/%d/%Y",
    )  # fmt: skip
    _, expected = by_duckdb
    raw = MONTHLY.format("(SELECT upper(base) AS base, day, trips, vehicles FROM public.fhv_raw) AS r")
    assert typed(stoa.sql(raw)) == expected


def test_the_raw_file_without_options_names_its_first_bad_line(stoa, shared_data):
    stoa.sql(
        "CREATE TABLE public.fhv_bad (base varchar, base_name varchar, day date, trips bigint, vehicles bigint)"
    )
    with pytest.raises(StoaError) as refused:
        stoa.run("load", str(shared_data / "fhv-daily-2015-raw.csv"), "--into", "public.fhv_bad", "--warehouse", stoa.warehouse)
    assert re.search(r"fhv-daily-2015-raw\.csv.*line \d+|line \d+.*fhv-daily-2015-raw\.csv", str(refused.value), re.S), refused.value
    assert stoa.sql("SELECT count(*) AS n FROM public.fhv_bad") == [{"n": 0}]
