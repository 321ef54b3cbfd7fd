"""Tables in S3: loads, small writes, crashes, upkeep, other readers."""

import json

import pyarrow.orc as orc
import pytest
from pyarrow import fs
from pyiceberg.catalog.sql import SqlCatalog

from stores import ACCESS_KEY, SECRET_KEY

ROWS = 200_000


@pytest.fixture
def report(warehouse):
    """The ad-report table of `stoa bench`."""
    warehouse.run("bench", "generate", "--rows", str(ROWS), "--table", "report")
    return warehouse


def keys_of(s3, bucket):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [entry for page in pages for entry in page.get("Contents", [])]


def check(warehouse, *flags):
    """The report of `stoa table check`, which must find no damage."""
    return json.loads(warehouse.run("table", "check", "--json", *flags))


def test_a_file_is_loaded_and_asked_for(warehouse, tmp_path):
    file = tmp_path / "visits.csv"
    file.write_text("day,visits\n" + "".join(f"2025-01-{1 + n % 31:02},{n}\n" for n in range(1000)))
    warehouse.run("load", str(file), "--into", "visits", "--create")
    rows = warehouse.sql("SELECT count(*) AS n, sum(visits) AS s FROM visits WHERE day = DATE '2025-01-01'")
    assert [int(rows[0]["n"]), int(rows[0]["s"])] == [33, sum(range(0, 1000, 31))]
    assert "public.visits" in warehouse.run("table", "list")
    check(warehouse)


def test_tables_lie_under_the_prefix_as_it_is_written(warehouse, s3, bucket):
    warehouse.sql("CREATE TABLE t (a int) PARTITIONED BY (s text)", "INSERT INTO t VALUES (1, 'x y/z%')", "FLUSH TABLE t")
    keys = [entry["Key"] for entry in keys_of(s3, bucket)]
    assert keys and all(key.startswith("ware house/ü%20/public/t/") for key in keys), keys
    assert warehouse.sql("SELECT a FROM t WHERE s = 'x y/z%'") == [{"a": 1}]


def test_a_killed_server_loses_nothing(warehouse):
    server = warehouse.server()
    assert server.said["catalog"] == str(warehouse.catalog)
    server.sql("CREATE TABLE kept (id bigint)")
    for n in range(30):
        server.sql(f"INSERT INTO kept VALUES ({n})")
        if n == 10:
            server.sql("FLUSH TABLE kept")
    server.kill()
    server = warehouse.server()
    assert server.sql("SELECT count(*) AS n, sum(id) AS s FROM kept") == [{"n": 30, "s": sum(range(30))}]
    server.stop()
    check(warehouse)


def test_upkeep_leaves_what_is_needed_and_nothing_else(warehouse, s3, bucket):
    server = warehouse.server("--no-maintenance")
    server.sql("CREATE TABLE t (id bigint) ORDER BY (id)")
    for n in range(8):
        server.sql(f"INSERT INTO t VALUES ({n})")
        server.sql("FLUSH TABLE t")
    server.sql("UPDATE t SET id = id + 100 WHERE id = 3")
    server.sql("DELETE FROM t WHERE id = 4")
    server.sql("COMPACT TABLE t FULL")
    # What was replaced stays for ten minutes, for reports that run; expiry must leave it.
    server.sql("ALTER TABLE t SET TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '0')")
    server.sql("EXPIRE SNAPSHOTS FROM t")
    expected = [{"id": id} for id in [0, 1, 2, 5, 6, 7, 103]]
    assert server.sql("SELECT id FROM t ORDER BY id") == expected
    [listed] = json.loads(warehouse.run("table", "list", "--json"))
    assert (listed["rows"], listed["files"]) == (7, 1)
    check(warehouse)
    # A file that nobody knows is found and removed.
    s3.put_object(Bucket=bucket, Key="ware house/ü%20/public/t/data/stray.orc", Body=b"x")
    removed = json.loads(warehouse.run("table", "clean", "--older-than", "0s", "--json"))
    assert "1" in json.dumps(removed)
    assert not any(entry["Key"].endswith("stray.orc") for entry in keys_of(s3, bucket))
    assert server.sql("SELECT id FROM t ORDER BY id") == expected
    server.sql("DROP TABLE t PURGE")
    server.stop()
    assert keys_of(s3, bucket) == []


def test_pyiceberg_and_pyarrow_read_the_same(report, gateway, s3, bucket):
    catalog = SqlCatalog(
        "stoa",
        uri=f"sqlite:///{report.catalog}",
        warehouse=report.url,
        **{
            "s3.endpoint": gateway.url,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
            "s3.region": "us-east-1",
        },
    )
    ours = report.sql("SELECT count(*) AS n, sum(impressions) AS i, sum(clicks) AS c FROM report")[0]
    table = catalog.load_table("public.report").scan(selected_fields=("impressions", "clicks")).to_arrow()
    sums = [sum(table[name].to_pylist()) for name in ("impressions", "clicks")]
    assert [int(ours["n"]), int(ours["i"]), int(ours["c"])] == [table.num_rows, *sums]

    store = fs.S3FileSystem(
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
        endpoint_override=gateway.url.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
    )
    files = [entry["Key"] for entry in keys_of(s3, bucket) if entry["Key"].endswith(".orc")]
    rows = sum(orc.ORCFile(store.open_input_file(f"{bucket}/{key}")).nrows for key in files)
    assert rows == ROWS


def test_spellings_of_hadoop_are_read(report):
    """Spark writes s3a:// into its tables."""
    hadoops = type(report)(report.url.replace("s3://", "s3a://"), report.endpoint, report.directory)
    assert int(hadoops.sql("SELECT count(*) AS n FROM report")[0]["n"]) == ROWS


def test_small_files_are_one_request_large_ones_have_parts(warehouse, proxy, s3, bucket):
    counter = proxy("--latency", "0ms")
    warehouse.endpoint = counter.url
    warehouse.sql("CREATE TABLE t (id bigint)")
    before = counter.counts()["methods"]
    warehouse.sql("INSERT INTO t VALUES (1)", "FLUSH TABLE t")
    after = counter.counts()["methods"]
    # Data file, manifest, manifest list, metadata file; no upload is begun.
    assert after["PUT"] - before["PUT"] == 4
    assert after.get("POST", 0) == before.get("POST", 0)
    warehouse.sql("CREATE TABLE big AS SELECT value, md5(cast(value AS text)) AS m FROM generate_series(1, 1000000) AS s(value)")
    methods = counter.counts()["methods"]
    # One upload is begun and completed; its parts are PUTs.
    assert methods.get("POST", 0) - after.get("POST", 0) == 2
    largest = max(keys_of(s3, bucket), key=lambda entry: entry["Size"])
    parts = -(-largest["Size"] // (8 << 20))
    assert parts > 1 and largest["ETag"].strip('"').endswith(f"-{parts}")
    assert warehouse.sql("SELECT count(DISTINCT m) AS n, max(value) AS m FROM big") == [{"n": 1000000, "m": 1000000}]


def test_another_catalog_is_not_begun_in_silence(report, tmp_path):
    report.run("sql", "-c", "CREATE SCHEMA other", "-c", "CREATE TABLE other.t AS SELECT 7 AS x")
    report.catalog = tmp_path / "elsewhere" / "catalog.db"
    refused = report.attempt("sql", "-c", "SELECT 1")
    assert refused.returncode != 0 and "stoa table recover" in refused.stderr
    assert not report.catalog.exists()
    assert "other.t, public.report" in report.run("table", "recover")
    assert int(report.sql("SELECT count(*) AS n FROM report")[0]["n"]) == ROWS
    assert report.sql("SELECT x FROM other.t") == [{"x": 7}]
    assert "has all tables" in report.run("table", "recover")
    check(report)
