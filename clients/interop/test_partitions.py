"""Partition transforms and sort orders: the same rows written by Stoa and by Spark land in the same
partitions, and each engine's pruning finds the other's rows."""

import pytest
from engines import rows_of, same_rows

# Name, column, its type in both dialects, the transform in Stoa's SQL and in Spark's, a filter.
TRANSFORMS = [
    ("identity_text", "k varchar", "k string", "k", "k", "k = 'k3'"),
    ("identity_date", "d date", "d date", "d", "d", "d = DATE '1969-12-24'"),
    ("year_date", "d date", "d date", "year(d)", "years(d)", "d >= DATE '1971-01-01'"),
    ("month_date", "d date", "d date", "month(d)", "months(d)", "d BETWEEN DATE '1970-02-01' AND DATE '1970-03-15'"),
    ("day_date", "d date", "d date", "day(d)", "days(d)", "d < DATE '1970-01-01'"),
    ("day_timestamp", "t timestamp", "t timestamp_ntz", "day(t)", "days(t)", "t < TIMESTAMP '1970-01-01 00:00:00'"),
    ("hour_timestamp", "t timestamp", "t timestamp_ntz", "hour(t)", "hours(t)", "t > TIMESTAMP '1970-02-01 01:00:00'"),
    ("bucket_int", "i int", "i int", "bucket(8, i)", "bucket(8, i)", "i = 17"),
    ("bucket_bigint", "b bigint", "b bigint", "bucket(8, b)", "bucket(8, b)", "b = -300000000000"),
    ("bucket_text", "k varchar", "k string", "bucket(8, k)", "bucket(8, k)", "k = 'k5'"),
    ("bucket_date", "d date", "d date", "bucket(8, d)", "bucket(8, d)", "d = DATE '1970-01-09'"),
    ("bucket_timestamp", "t timestamp", "t timestamp_ntz", "bucket(8, t)", "bucket(8, t)", "t = TIMESTAMP '1970-01-01 00:00:00'"),
    ("bucket_decimal", "p decimal(12, 2)", "p decimal(12, 2)", "bucket(8, p)", "bucket(8, p)", "p = 4.25"),
    ("truncate_int", "i int", "i int", "truncate(10, i)", "truncate(10, i)", "i BETWEEN -15 AND 5"),
    ("truncate_text", "k varchar", "k string", "truncate(1, k)", "truncate(1, k)", "k LIKE 'k1%'"),
    ("truncate_decimal", "p decimal(12, 2)", "p decimal(12, 2)", "truncate(500, p)", "truncate(500, p)", "p < 0"),
]

# One value per row from its number, for each column name used above; runs across the epoch.
STOA_VALUES = {
    "k": "concat('k', CAST(n AS varchar))",
    "d": "DATE '1970-01-01' + CAST(n * 8 AS int)",
    "t": "CAST(to_timestamp_seconds(n * 691980) AS timestamp)",
    "i": "CAST(n AS int)",
    "b": "CAST(n * 100000000000 AS bigint)",
    "p": "CAST(n * 4.25 AS decimal(12, 2))",
}
SPARK_VALUES = {
    "k": "concat('k', CAST(n AS string))",
    "d": "date_add(DATE '1970-01-01', CAST(n * 8 AS int))",
    "t": "CAST(CAST(n * 691980 AS timestamp) AS timestamp_ntz)",
    "i": "CAST(n AS int)",
    "b": "CAST(n * 100000000000 AS bigint)",
    "p": "CAST(n * 4.25 AS decimal(12, 2))",
}


@pytest.mark.parametrize("case", TRANSFORMS, ids=[case[0] for case in TRANSFORMS])
def test_same_partitions_and_rows(stoa, spark, case):
    label, stoa_column, spark_column, stoa_term, spark_term, condition = case
    column = stoa_column.split()[0]
    ours, theirs = f"public.{label}_by_stoa", f"public.{label}_by_spark"

    stoa.sql(
        f"CREATE TABLE {ours} (n bigint, {stoa_column}) PARTITIONED BY ({stoa_term})",
        f"INSERT INTO {ours} SELECT n, {STOA_VALUES[column]} AS {column} FROM generate_series(-20, 50) AS numbers (n)",
        f"INSERT INTO {ours} VALUES (NULL, NULL)",
    )
    spark.sql(
        f"CREATE TABLE stoa.{theirs} (n bigint, {spark_column}) USING iceberg PARTITIONED BY ({spark_term}) "
        "TBLPROPERTIES ('write.format.default'='orc')"
    )
    spark.sql(f"INSERT INTO stoa.{theirs} SELECT id AS n, {SPARK_VALUES[column]} FROM (SELECT id, id AS n FROM range(-20, 51))")
    spark.sql(f"INSERT INTO stoa.{theirs} VALUES (NULL, NULL)")

    # The same rows are in both tables, whoever reads.
    by_spark = rows_of(spark.sql(f"SELECT * FROM stoa.{ours} ORDER BY n NULLS FIRST"))
    assert len(by_spark) == 72
    assert by_spark == rows_of(spark.sql(f"SELECT * FROM stoa.{theirs} ORDER BY n NULLS FIRST"))
    same_rows(stoa.sql(f"SELECT * FROM {theirs} ORDER BY n NULLS FIRST"), by_spark)

    # Spark derives the same partitions for its own rows as Stoa wrote for its.
    partitions = "SELECT partition.* , record_count FROM stoa.{}.partitions"
    assert sorted(map(str, spark.sql(partitions.format(ours)).collect())) == sorted(
        map(str, spark.sql(partitions.format(theirs)).collect())
    )

    # Pruning: either reader finds the same rows behind either writer's partition values.
    query = f"SELECT n FROM {{}} WHERE {condition} ORDER BY n"
    expected = rows_of(spark.sql(query.format(f"stoa.{theirs}")))
    assert 0 < len(expected) < 72
    assert rows_of(spark.sql(query.format(f"stoa.{ours}"))) == expected
    same_rows(stoa.sql(query.format(ours)), expected)
    same_rows(stoa.sql(query.format(theirs)), expected)
    same_rows(stoa.server_sql(query.format(theirs)), expected)


def test_spark_writes_into_a_partitioned_table_of_stoa(stoa, spark, name):
    stoa.sql(
        f"CREATE TABLE public.{name} (account bigint, day date, imps bigint) "
        "PARTITIONED BY (month(day), bucket(4, account)) ORDER BY (account, day)"
    )
    spark.sql(
        f"INSERT INTO stoa.public.{name} SELECT id % 10, date_add(DATE '2026-01-01', CAST(id % 90 AS int)), id FROM range(900)"
    )
    stoa.sql(f"INSERT INTO public.{name} VALUES (3, DATE '2026-02-14', 1000000)")
    query = "SELECT account, sum(imps) AS imps FROM {} WHERE day >= DATE '2026-02-01' AND account < 5 GROUP BY account ORDER BY account"
    theirs = rows_of(spark.sql(query.format(f"stoa.public.{name}")))
    assert len(theirs) == 5
    same_rows(stoa.sql(query.format(f"public.{name}")), theirs)
    same_rows(stoa.server_sql(query.format(f"public.{name}")), theirs)


def test_spark_understands_the_sort_order(stoa, spark, iceberg, name):
    stoa.sql(f"CREATE TABLE public.{name} (account bigint, day date) PARTITIONED BY (month(day)) ORDER BY (account, day DESC)")
    table = iceberg.load_table(f"public.{name}")
    order = [(field.source_id, str(field.transform), field.direction.name) for field in table.sort_order().fields]
    assert order == [(1, "identity", "ASC"), (2, "identity", "DESC")]
    assert spark.table(f"stoa.public.{name}").count() == 0


def test_stoa_follows_a_partition_change_by_spark(stoa, spark, name):
    stoa.sql(
        f"CREATE TABLE public.{name} (account bigint, day date) PARTITIONED BY (month(day))",
        f"INSERT INTO public.{name} VALUES (1, DATE '2026-01-10'), (2, DATE '2026-02-10')",
    )
    spark.sql(f"ALTER TABLE stoa.public.{name} REPLACE PARTITION FIELD day_month WITH days(day)")
    spark.sql(f"INSERT INTO stoa.public.{name} VALUES (3, DATE '2026-02-11')")
    stoa.sql(f"INSERT INTO public.{name} VALUES (4, DATE '2026-02-12')")
    query = "SELECT account FROM {} WHERE day > DATE '2026-02-01' ORDER BY account"
    expected = [{"account": 2}, {"account": 3}, {"account": 4}]
    assert rows_of(spark.sql(query.format(f"stoa.public.{name}"))) == expected
    assert stoa.sql(query.format(f"public.{name}")) == expected
