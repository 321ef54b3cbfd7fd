"""Spark (ORC Java 2.x) reads our files to the same values, also with predicates pushed down."""

import shutil

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from compare import check, flat
from conftest import write
from tables import OPTIONS, table

# Spark's own ORC reader refuses unions, and TIMESTAMP_INSTANT in whatever file it is (with Iceberg
# it reads it: clients/interop).
NOT_IN_SPARK = {"union", "instant", "instant_zone"}


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None:
        pytest.skip("no Java here")
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("stoa-orc")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        # What Spark reads is written as Parquet, which pyarrow reads without Spark.
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
        .config("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
    )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def test_values(spark, scratch):
    folder = scratch / "spark"
    folder.mkdir(exist_ok=True)
    cases = [(513, "none"), (513, "half"), (2_000, "runs"), (513, "all"), (2_000, "some")]
    for number, (rows, pattern) in enumerate(cases):
        content = table(rows, pattern, without=NOT_IN_SPARK)
        path = folder / f"{number}.orc"
        write(content, OPTIONS[number], path)
        rows_as_parquet = folder / f"{number}.parquet"
        spark.read.orc(str(path)).coalesce(1).write.mode("overwrite").parquet(str(rows_as_parquet))
        found = parquet.read_table(rows_as_parquet)
        assert found.column_names == content.column_names
        for name in content.column_names:
            expected = content[name]
            if name == "timestamp_ns":
                # Spark's timestamps have microseconds: digits are cut off, towards the past.
                micros = [None if value is None else value // 1000 for value in flat(expected).to_pylist()]
                expected = pa.chunked_array([pa.array(micros, pa.timestamp("us"))])
            check(f"{rows} {pattern}, {name}", expected, found[name])


def test_predicates(spark, scratch):
    path = scratch / "spark-predicates.orc"
    columns = ["int64", "string", "date", "decimal", "timestamp_us"]
    content = table(10_001, "some").select(columns)
    write(content, ["stride=1000", *(f"bloom={column}" for column in columns)], path)
    spark.read.orc(str(path)).createOrReplaceTempView("ours")
    for column in columns:
        values = [value for value in content[column].to_pylist() if value is not None]
        for value in values[:: len(values) // 3]:
            text = str(value).replace("'", "''")
            kind = {"date": "DATE ", "timestamp_us": "TIMESTAMP "}.get(column, "")
            quoted = f"{kind}'{text}'" if column not in ("int64", "decimal") else text
            found = spark.sql(f"SELECT count(*) FROM ours WHERE {column} = {quoted}").first()[0]
            assert found == values.count(value), (column, value)
