"""Rows that other engines delete by delete files, and data files that are not ORC: Stoa answers as Spark does."""

import pyarrow
import pytest
from engines import StoaError, rows_of, same_rows

# Spark's, for rows deleted, changed and merged without rewriting data files.
MERGE_ON_READ = (
    "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read'"
)


def check_same(stoa, spark, table):
    """Rows, counts and sums, with and without conditions; returns how many rows there are."""
    spark.sql(f"REFRESH TABLE stoa.{table}")
    # Spark and Stoa do not agree on where NULL comes in an order.
    all_rows = "SELECT * FROM {} ORDER BY id, coalesce(name, '')"
    for query in (
        all_rows,
        "SELECT count(*) AS n FROM {}",
        "SELECT min(id) AS least, max(id) AS greatest, sum(id) AS ids FROM {}",
        "SELECT name, count(*) AS n, sum(id) AS ids FROM {} WHERE id > 100 GROUP BY name ORDER BY coalesce(name, '')",
        "SELECT id, name FROM {} WHERE id = 13 ORDER BY id, name",
    ):
        theirs = rows_of(spark.sql(query.format(f"stoa.{table}")))
        same_rows(stoa.server_sql(query.format(table)), theirs)
        if query == all_rows:
            same_rows(stoa.sql(query.format(table)), theirs)
            rows = len(theirs)
    return rows


def fill(spark, table, form, version=2, partitioned=""):
    spark.sql(
        f"CREATE TABLE stoa.{table} (id int, name string, day date) USING iceberg {partitioned} TBLPROPERTIES "
        f"('format-version'='{version}', 'write.format.default'='{form}', {MERGE_ON_READ})"
    )
    spark.sql(
        f"INSERT INTO stoa.{table} SELECT CAST(id AS int), concat('name ', id % 7), "
        f"date_add(DATE '2026-01-01', CAST(id % 60 AS int)) FROM range(1000)"
    )


def change(spark, table):
    """Deletes, updates and merges; leaves 1000 - 100 rows, and 10 new ones."""
    spark.sql(f"DELETE FROM stoa.{table} WHERE id % 10 = 3")
    spark.sql(f"UPDATE stoa.{table} SET name = 'changed' WHERE id % 10 = 4")
    spark.sql(
        f"MERGE INTO stoa.{table} t USING (SELECT CAST(id AS int) AS id FROM range(990, 1010)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, name, day) VALUES (s.id, 'new', DATE '2026-02-02')"
    )


def delete_files(spark, table):
    return spark.table(f"stoa.{table}.delete_files").count()


@pytest.mark.parametrize(
    ("form", "partitioned"), [("orc", ""), ("parquet", "PARTITIONED BY (months(day))"), ("avro", "")]
)
def test_spark_changes_rows_on_read(stoa, spark, name, form, partitioned):
    table = f"public.{name}"
    fill(spark, table, form, partitioned=partitioned)
    assert check_same(stoa, spark, table) == 1000
    change(spark, table)
    assert delete_files(spark, table) > 0
    assert check_same(stoa, spark, table) == 911
    stoa.run("table", "check", "--warehouse", stoa.warehouse, table)

    # Stoa changes rows of the same files; Spark sees exactly that.
    assert stoa.sql(f"DELETE FROM {table} WHERE id BETWEEN 10 AND 19") == []
    assert check_same(stoa, spark, table) == 902
    stoa.sql(f"UPDATE {table} SET name = 'stoa' WHERE id % 100 = 55")
    stoa.sql(f"INSERT INTO {table} VALUES (13, 'again', DATE '2026-01-14')")
    assert check_same(stoa, spark, table) == 903
    stoa.sql(
        f"MERGE INTO {table} t USING (SELECT CAST(value AS int) AS id FROM generate_series(20, 29) AS s(value)) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'back', DATE '2026-01-01')"
    )
    assert check_same(stoa, spark, table) == 903 - 9 + 1
    # Spark deletes from what Stoa wrote, and Stoa merges all of it.
    spark.sql(f"DELETE FROM stoa.{table} WHERE id % 9 = 1")
    left = check_same(stoa, spark, table)
    stoa.sql(f"COMPACT TABLE {table}")
    assert check_same(stoa, spark, table) == left
    assert delete_files(spark, table) == 0
    formats = rows_of(spark.sql(f"SELECT DISTINCT file_format AS f FROM stoa.{table}.files"))
    assert formats == [{"f": "ORC"}]


def test_version_3_with_deletion_vectors(stoa, spark, name):
    table = f"public.{name}"
    fill(spark, table, "parquet", version=3)
    change(spark, table)
    formats = rows_of(spark.sql(f"SELECT DISTINCT file_format AS f FROM stoa.{table}.delete_files"))
    assert formats == [{"f": "PUFFIN"}]
    assert check_same(stoa, spark, table) == 911
    # Rows of version 3 have a lineage, which Stoa does not write.
    for statement in (
        f"INSERT INTO {table} VALUES (1, 'x', DATE '2026-01-01')",
        f"DELETE FROM {table} WHERE id = 1",
        f"UPDATE {table} SET name = 'x' WHERE id = 1",
    ):
        with pytest.raises(StoaError, match="version"):
            stoa.sql(statement)
    assert check_same(stoa, spark, table) == 911


def delete_by_values(spark, table, fields, rows, form):
    """Commits an equality delete with Iceberg's Java API, as Flink's upserts make them."""
    jvm, new_array = spark._jvm, spark._sc._gateway.new_array
    iceberg = jvm.org.apache.iceberg
    loaded = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, f"stoa.{table}")
    schema = loaded.schema().select(new_array_of(spark, fields))
    ids = new_array(jvm.int, len(fields))
    for at, field in enumerate(fields):
        ids[at] = schema.findField(field).fieldId()
    factory = iceberg.data.GenericAppenderFactory(loaded.schema(), loaded.spec(), ids, schema, None)
    output = loaded.io().newOutputFile(f"{loaded.location()}/data/deletes-{len(rows)}-{form}.{form}")
    output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output)
    writer = factory.newEqDeleteWriter(output, getattr(iceberg.FileFormat, form.upper()), None)
    for row in rows:
        record = iceberg.data.GenericRecord.create(schema)
        for field, value in zip(fields, row):
            record.setField(field, value)
        writer.write(record)
    writer.close()
    loaded.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def new_array_of(spark, texts):
    array = spark._sc._gateway.new_array(spark._jvm.java.lang.String, len(texts))
    for at, text in enumerate(texts):
        array[at] = text
    return array


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_equality_deletes(stoa, spark, name, form):
    table = f"public.{name}"
    fill(spark, table, form)
    spark.sql(f"INSERT INTO stoa.{table} VALUES (7, NULL, NULL), (2000, NULL, NULL)")
    delete_by_values(spark, table, ["id"], [(13,), (500,), (77,)], form)
    assert check_same(stoa, spark, table) == 999
    delete_by_values(spark, table, ["id", "name"], [(7, None), (8, "name 2")], form)
    assert check_same(stoa, spark, table) == 998
    # What comes later stays, whoever wrote it.
    stoa.sql(f"INSERT INTO {table} VALUES (13, 'stoa', DATE '2026-01-01')")
    spark.sql(f"INSERT INTO stoa.{table} VALUES (500, 'spark', DATE '2026-01-01')")
    assert check_same(stoa, spark, table) == 1000
    stoa.sql(f"DELETE FROM {table} WHERE id < 100 AND id <> 13")
    left = check_same(stoa, spark, table)
    stoa.sql(f"COMPACT TABLE {table}")
    assert check_same(stoa, spark, table) == left == 1000 - 98
    assert delete_files(spark, table) == 0


def test_pyiceberg_appends_parquet(stoa, spark, iceberg, name):
    table = f"public.{name}"
    stoa.sql(
        f"CREATE TABLE {table} (id int, name varchar, day date)",
        f"INSERT INTO {table} VALUES (1, 'stoa', DATE '2026-01-01')",
    )
    loaded = iceberg.load_table(table)
    # PyIceberg does not write ORC.
    with loaded.transaction() as transaction:
        transaction.set_properties({"write.format.default": "parquet"})
    rows = pyarrow.table(
        {"id": pyarrow.array(range(2, 400), pyarrow.int32()), "name": [f"name {i % 7}" for i in range(2, 400)]},
    )
    loaded.append(rows.append_column("day", pyarrow.array([None] * 398, pyarrow.date32())))
    assert check_same(stoa, spark, table) == 399
    # Columns renamed, added and dropped afterwards are known by field id.
    stoa.sql(f"ALTER TABLE {table} ADD COLUMN more bigint", f"ALTER TABLE {table} DROP COLUMN day")
    assert check_same(stoa, spark, table) == 399
    loaded.refresh()
    loaded.delete("id > 300")
    assert check_same(stoa, spark, table) == 300
    assert stoa.sql(f"DELETE FROM {table}") == []
    assert check_same(stoa, spark, table) == 0


def test_types_in_parquet_and_avro(stoa, spark, name):
    for form in ("parquet", "avro"):
        table = f"public.{name}_{form}"
        spark.sql(
            f"CREATE TABLE stoa.{table} (id int, b boolean, l bigint, f float, d double, dec decimal(20, 4), s string, "
            "bin binary, dt date, ts timestamp_ntz, tz timestamp, li array<int>, st struct<x: int, y: string>, "
            f"m map<string, bigint>) USING iceberg TBLPROPERTIES ('write.format.default'='{form}')"
        )
        spark.sql(
            f"INSERT INTO stoa.{table} VALUES (1, true, -5, 0.5, 1e300, 12345678901234.5678, 'ü', X'00ff', "
            "DATE '0001-01-01', TIMESTAMP_NTZ '1969-12-31 23:59:58.999999', TIMESTAMP '2400-01-01 00:00:00', "
            "array(1, NULL, 3), named_struct('x', 1, 'y', 'a'), map('k', 7L)), "
            "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
        )
        spark.sql(
            f"INSERT INTO stoa.{table} SELECT 3, false, 9223372036854775807, float(-0.25), double('-1e-300'), -0.0001, '', "
            "X'', DATE '9999-12-31', TIMESTAMP_NTZ '9999-12-31 00:00:00', TIMESTAMP '1600-01-01 00:00:00', "
            "filter(array(1), x -> x > 5), named_struct('x', CAST(NULL AS int), 'y', CAST(NULL AS string)), "
            "map_filter(map('k', 7L), (k, v) -> v > 9)"
        )
        columns = "id, b, l, f, d, dec, s, bin, dt, ts, li, st, m"
        query = f"SELECT {columns}, CAST(tz AS {{}}) AS tz FROM {{}} ORDER BY id"
        theirs = rows_of(spark.sql(query.format("timestamp", f"stoa.{table}")))
        same_rows(stoa.sql(query.format("timestamptz", table)), theirs)
        spark.sql(f"ALTER TABLE stoa.{table} ALTER COLUMN f TYPE double")
        spark.sql(f"ALTER TABLE stoa.{table} ALTER COLUMN dec TYPE decimal(30, 4)")
        spark.sql(f"ALTER TABLE stoa.{table} ALTER COLUMN id TYPE bigint")
        spark.sql(f"ALTER TABLE stoa.{table} ADD COLUMN st.z date")
        spark.sql(f"ALTER TABLE stoa.{table} RENAME COLUMN s TO text")
        query = "SELECT id, f, dec, text, st FROM {} ORDER BY id"
        same_rows(stoa.sql(query.format(table)), rows_of(spark.sql(query.format(f"stoa.{table}"))))
