"""Reads one table of a Stoa warehouse with another engine and prints its months (make demo).

    read_table.py spark|pyiceberg WAREHOUSE TABLE METRIC

Needs nothing of Stoa: only the catalog database and the data files in the warehouse.
"""

import os
import sys
import time
from pathlib import Path

engine, warehouse, table, metric = sys.argv[1:]
warehouse = Path(warehouse).resolve()


def by_spark():
    from pyspark.sql import SparkSession

    jars = ",".join(sorted(str(jar) for jar in Path(os.environ["STOA_INTEROP_JARS"]).glob("*.jar")))
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.catalog.stoa", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.stoa.type", "jdbc")
        .config("spark.sql.catalog.stoa.uri", f"jdbc:sqlite:file:{warehouse}/catalog.db")
        .config("spark.sql.catalog.stoa.warehouse", warehouse.as_uri())
        .config("spark.sql.catalog.stoa.jdbc.schema-version", "V1")
        .config("spark.sql.catalog.stoa.jdbc.init-catalog-tables", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    print(f"    Spark {session.version}, catalog stoa, table {table}")
    started = time.time()
    rows = session.sql(
        f"SELECT date_format(day, 'yyyy-MM') AS month, count(*), sum({metric}) FROM stoa.{table} GROUP BY 1 ORDER BY 1"
    ).collect()
    return started, [tuple(row) for row in rows]


def by_pyiceberg():
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyiceberg
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("stoa", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=warehouse.as_uri())
    print(f"    PyIceberg {pyiceberg.__version__}, catalog stoa, table {table}")
    started = time.time()
    months = {}
    for batch in catalog.load_table(table).scan(selected_fields=("day", metric)).to_arrow_batch_reader():
        keys = pc.strftime(batch.column("day"), format="%Y-%m")
        part = pa.table({"month": keys, "metric": batch.column(metric)}).group_by("month")
        for row in part.aggregate([("metric", "sum"), ([], "count_all")]).to_pylist():
            rows, total = months.get(row["month"], (0, 0))
            months[row["month"]] = (rows + row["count_all"], total + (row["metric_sum"] or 0))
    return started, [(month, *months[month]) for month in sorted(months)]


started, months = {"spark": by_spark, "pyiceberg": by_pyiceberg}[engine]()
took = time.time() - started
print(f"     {'month':<8} {'rows':>12} {metric:>16}")
for month, rows, total in months:
    print(f"     {month:<8} {rows:>12,} {total:>16,}")
print(f"     {'all':<8} {sum(m[1] for m in months):>12,} {sum(m[2] for m in months):>16,}   ({took:.1f} s)")
