"""The ad-report table: Stoa writes it, every engine computes the same numbers from it."""

import pytest
from engines import plain, rows_of, same_rows

ROWS = 200_000
TABLE = "public.ad_report"


@pytest.fixture(scope="module")
def report(stoa):
    stoa.run("bench", "generate", "--rows", str(ROWS), "--warehouse", stoa.warehouse, "--table", TABLE)
    return TABLE


def digest_query(schema, table):
    """One SELECT that every engine understands and that every row has an influence on."""
    terms = ["count(*) AS n"]
    for field in schema.fields:
        name, kind = field.name, field.dataType.typeName()
        terms.append(f"count({name}) AS {name}_n")
        if kind in ("integer", "long", "short", "byte", "decimal"):
            terms.append(f"sum(cast({name} AS decimal(38, 6))) AS {name}_sum")
        elif kind in ("double", "float"):
            terms.append(f"sum(cast({name} AS decimal(38, 4))) AS {name}_sum")
        else:
            terms.append(f"min({name}) AS {name}_min, max({name}) AS {name}_max")
    return f"SELECT {', '.join(terms)} FROM {table}"


def test_all_engines_agree_on_counts_and_sums(stoa, spark, iceberg, report):
    frame = spark.table(f"stoa.{report}")
    by_spark = rows_of(spark.sql(digest_query(frame.schema, f"stoa.{report}")))
    assert by_spark[0]["n"] == ROWS
    same_rows(stoa.sql(digest_query(frame.schema, report)), by_spark)
    same_rows(stoa.server_sql(digest_query(frame.schema, report)), by_spark)

    import duckdb

    arrow = iceberg.load_table(report).scan().to_arrow()
    assert arrow.num_rows == ROWS
    database = duckdb.connect()
    database.register("ad_report", arrow)
    by_duckdb = database.sql(digest_query(frame.schema, "ad_report")).to_arrow_table().to_pylist()
    assert [{k: plain(v) for k, v in row.items()} for row in by_duckdb] == [
        {k: plain(v) for k, v in row.items()} for row in by_spark
    ]


def test_a_report_is_the_same_everywhere(stoa, spark, report):
    where = "day BETWEEN DATE '{}' AND DATE '{}'"
    span = rows_of(spark.sql(f"SELECT date_sub(max(day), 30) AS a, max(day) AS z FROM stoa.{report}"))[0]
    where = where.format(span["a"], span["z"])
    account = rows_of(
        spark.sql(f"SELECT account_id, count(*) AS n FROM stoa.{report} WHERE {where} GROUP BY account_id ORDER BY n DESC LIMIT 1")
    )[0]["account_id"]
    query = (
        "SELECT account_id, day, sum(impressions) AS impressions, sum(clicks) AS clicks FROM {} "
        f"WHERE account_id = {account} AND {where} GROUP BY account_id, day ORDER BY day"
    )
    by_spark = rows_of(spark.sql(query.format(f"stoa.{report}")))
    assert len(by_spark) > 1
    same_rows(stoa.sql(query.format(report)), by_spark)
    same_rows(stoa.server_sql(query.format(report)), by_spark)


def test_pyiceberg_filters_by_the_same_statistics(stoa, iceberg, report):
    day = stoa.sql(f"SELECT max(day) AS day FROM {report}")[0]["day"]
    ours = stoa.sql(f"SELECT count(*) AS n FROM {report} WHERE day = DATE '{day}'")[0]["n"]
    assert iceberg.load_table(report).scan(row_filter=f"day == '{day}'").to_arrow().num_rows == ours > 0


def test_spark_appends_and_stoa_sees_it(stoa, spark, name):
    stoa.run("bench", "generate", "--rows", "5000", "--warehouse", stoa.warehouse, "--table", f"public.{name}")
    before = stoa.sql(f"SELECT count(*) AS n, sum(impressions) AS impressions FROM public.{name}")[0]
    spark.sql(
        f"INSERT INTO stoa.public.{name} SELECT * FROM stoa.public.{name} "
        "WHERE day >= (SELECT date_sub(max(day), 10) FROM "
        f"stoa.public.{name})"
    )
    by_spark = rows_of(spark.sql(f"SELECT count(*) AS n, sum(impressions) AS impressions FROM stoa.public.{name}"))
    assert by_spark[0]["n"] > before["n"]
    same_rows(stoa.sql(f"SELECT count(*) AS n, sum(impressions) AS impressions FROM public.{name}"), by_spark)
    same_rows(stoa.server_sql(f"SELECT count(*) AS n, sum(impressions) AS impressions FROM public.{name}"), by_spark)
    # And Spark sees what Stoa adds to that.
    stoa.sql(f"INSERT INTO public.{name} SELECT * FROM public.{name} LIMIT 7")
    assert spark.table(f"stoa.public.{name}").count() == by_spark[0]["n"] + 7
    formats = rows_of(spark.sql(f"SELECT DISTINCT file_format FROM stoa.public.{name}.files"))
    assert formats == [{"file_format": "ORC"}]


def test_metadata_tables_describe_what_is_there(spark, report):
    files = rows_of(
        spark.sql(
            "SELECT count(*) AS files, sum(record_count) AS n, min(file_size_in_bytes) AS smallest "
            f"FROM stoa.{report}.files"
        )
    )[0]
    assert files["n"] == ROWS and files["smallest"] > 0
    snapshots = rows_of(spark.sql(f"SELECT operation, summary FROM stoa.{report}.snapshots"))
    assert {row["operation"] for row in snapshots} == {"append"}
    assert sum(int(row["summary"]["added-records"]) for row in snapshots) == ROWS
    assert int(snapshots[-1]["summary"]["total-records"]) == ROWS
    assert spark.table(f"stoa.{report}.manifests").count() >= 1
    assert spark.table(f"stoa.{report}.history").count() == len(snapshots)
    assert rows_of(spark.sql(f"SELECT sum(record_count) AS n FROM stoa.{report}.partitions"))[0]["n"] == ROWS
    bounds = rows_of(spark.sql(f"SELECT readable_metrics FROM stoa.{report}.files LIMIT 1"))[0]["readable_metrics"]
    for column, metrics in bounds.asDict().items():
        assert metrics["value_count"] > 0, column
        assert metrics["lower_bound"] is not None and metrics["lower_bound"] <= metrics["upper_bound"], column


def test_spark_finds_no_orphan_files(spark, report):
    orphans = spark.sql(
        f"CALL stoa.system.remove_orphan_files(table => '{report}', dry_run => true, "
        "older_than => TIMESTAMP '2000-01-01 00:00:00')"
    )
    assert orphans.collect() == []
