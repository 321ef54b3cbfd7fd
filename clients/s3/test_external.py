"""External tables whose files are in S3, in Hive's layout: what others wrote there, and what Stoa writes, which
pyarrow and boto3 read.
"""


import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from stores import ACCESS_KEY, SECRET_KEY
from warehouse import StoaError

FORMATS = ["parquet", "orc"]
LIMIT = 60


@pytest.fixture
def store(gateway):
    """pyarrow's own client of the gateway."""
    return fs.S3FileSystem(
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
        endpoint_override=gateway.url.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
    )


def start(warehouse):
    """`file_access` names a folder; locations in S3 need it to be on."""
    folder = warehouse.directory / "files"
    folder.mkdir(exist_ok=True)
    return warehouse.server("--file-access", str(folder))


@pytest.fixture
def server(warehouse):
    return start(warehouse)


def keys(s3, bucket, prefix):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))


def write(store, path, table, kind):
    with store.open_output_stream(path) as file:
        match kind:
            case "parquet":
                pq.write_table(table, file)
            case "orc":
                orc.write_table(table, file)
            case "textfile":
                lines = zip(*(column.to_pylist() for column in table.columns))
                file.write("".join("\x01".join(map(str, line)) + "\n" for line in lines).encode())


def rows_of(numbers):
    return pa.table({"id": pa.array(numbers, pa.int64()), "name": [f"n{number}" for number in numbers]})


def read_by_pyarrow(store, path, kind):
    """All rows below a path, with the values of the partitions, which are texts."""
    parts = ds.partitioning(pa.schema([("y", pa.string()), ("m", pa.string())]), flavor="hive")
    found = ds.dataset(path, filesystem=store, format=kind, partitioning=parts).to_table()
    return sorted(zip(*(found[name].to_pylist() for name in ("id", "name", "y", "m"))))


def create(server, location, kind):
    server.sql(
        f"CREATE EXTERNAL TABLE t (id bigint, name text) PARTITIONED BY (y text, m text) STORED AS {kind} LOCATION '{location}'"
    )


def rows(server, condition="true"):
    found = server.sql(f"SELECT id, name, y, m FROM t WHERE {condition}")
    return sorted((int(row["id"]), row["name"], row["y"], row["m"]) for row in found)


@pytest.mark.parametrize("kind", [*FORMATS, "textfile"])
def test_what_pyarrow_wrote_is_read(server, store, bucket, kind):
    expected = []
    for year in ("2023", "2024"):
        for month in ("01", "x y/z%"):
            numbers = list(range(len(expected), len(expected) + 50))
            name = month.replace("%", "%25").replace("/", "%2F")
            write(store, f"{bucket}/ext/y={year}/m={name}/part-0", rows_of(numbers), kind)
            expected += [(number, f"n{number}", year, month) for number in numbers]
    # Hadoop's spelling means the same.
    create(server, f"{'s3a' if kind == 'orc' else 's3'}://{bucket}/ext", kind)
    assert rows(server) == expected
    assert rows(server, "y = '2024' AND m = 'x y/z%' AND id > 160") == [row for row in expected if row[2:] == ("2024", "x y/z%") and row[0] > 160]
    listed = server.sql("SHOW PARTITIONS t")
    assert [row["partition"] for row in listed] == [f"y={year}/m={month}" for year in ("2023", "2024") for month in ("01", "x y%2Fz%25")]
    assert {int(row["files"]) for row in listed} == {1} and all(int(row["file_size_in_bytes"]) > 0 for row in listed)
    # What is new is there for the next statement: a file, a partition, and what only its directory is hidden of.
    for path in ("y=2024/m=01/part-1", "y=2025/m=07/part-0", "y=2025/m=07/_hidden", ".hidden/m=07/part-0"):
        write(store, f"{bucket}/ext/{path}", rows_of([1000 + len(path)]), kind)
    new = rows(server, "id >= 1000")
    assert [row[2:] for row in new] == [("2024", "01"), ("2025", "07")]


def test_pruned_prefixes_are_not_listed(warehouse, proxy, store, bucket):
    """Twelve months in each of eight years: a condition on the year costs one listing of months."""
    counter = proxy("--latency", "0ms")
    warehouse.endpoint = counter.url
    server = start(warehouse)
    for year in range(2017, 2025):
        for month in range(1, 13):
            write(store, f"{bucket}/ext/y={year}/m={month:02}/part-0", rows_of([year * 100 + month]), "parquet")
    create(server, f"s3://{bucket}/ext", "parquet")

    def requests(condition, expected):
        before = sum(counter.counts()["methods"].values())
        assert [row[0] for row in rows(server, condition)] == expected
        return sum(counter.counts()["methods"].values()) - before

    all_of_them = [year * 100 + month for year in range(2017, 2025) for month in range(1, 13)]
    # Listings of the table, its years, its months; a file needs one request as it is small.
    assert requests("true", all_of_them) >= 1 + 8 + 96 + 96
    # The pointer and metadata are known by now.
    assert requests("y = '2020' AND m = '05'", [202005]) <= 6
    assert requests("y = '2020' AND m >= '11'", [202011, 202012]) <= 8
    assert requests("y < '2000'", []) <= 3
    plan = "\n".join(list(row.values())[0] for row in server.sql("EXPLAIN SELECT id FROM t WHERE y = '2020' AND m = '05'"))
    # Seven years and eleven months are left out.
    assert "partitions=1/19, files=1" in plan, plan


@pytest.mark.parametrize("kind", FORMATS)
def test_pyarrow_reads_what_is_written(server, store, s3, bucket, kind):
    location = f"s3://{bucket}/ext"
    create(server, location, kind)
    server.sql(
        "INSERT INTO t SELECT value, 'n' || value, '202' || value % 3, CASE WHEN value % 2 = 0 THEN 'a/b' ELSE 'ü %' END "
        "FROM generate_series(1, 3000) AS s(value)"
    )
    expected = sorted((n, f"n{n}", f"202{n % 3}", "a/b" if n % 2 == 0 else "ü %") for n in range(1, 3001))
    assert read_by_pyarrow(store, f"{bucket}/ext", kind) == expected == rows(server)
    before = keys(s3, bucket, "ext/")
    assert len(before) == 6 and all("/." not in key for key in before), before
    # Adds.
    server.sql("INSERT INTO t VALUES (5000, 'new', '2020', 'a/b')")
    expected.append((5000, "new", "2020", "a/b"))
    assert read_by_pyarrow(store, f"{bucket}/ext", kind) == expected
    # Replaces the partitions into which rows come.
    server.sql("INSERT OVERWRITE TABLE t PARTITION (y, m) SELECT id + 10000, name, y, m FROM t WHERE y = '2020' AND m = 'a/b' AND id < 100")
    kept = [row for row in expected if row[2:] != ("2020", "a/b")]
    moved = [(row[0] + 10000, *row[1:]) for row in expected if row[2:] == ("2020", "a/b") and row[0] < 100]
    assert read_by_pyarrow(store, f"{bucket}/ext", kind) == sorted(kept + moved) == rows(server)
    # A static one also by nothing.
    server.sql("INSERT OVERWRITE TABLE t PARTITION (y = '2020', m = 'a/b') SELECT id, name FROM t WHERE false")
    assert read_by_pyarrow(store, f"{bucket}/ext", kind) == kept == rows(server)
    assert all("/." not in key for key in keys(s3, bucket, "ext/"))
    # Dropping leaves the files.
    server.sql("DROP TABLE t")
    assert read_by_pyarrow(store, f"{bucket}/ext", kind) == kept


def test_partitions_are_added_dropped_and_repaired(server, store, s3, bucket):
    create(server, f"s3://{bucket}/ext", "parquet")
    names = lambda: [row["partition"] for row in server.sql("SHOW PARTITIONS t")]
    server.sql("ALTER TABLE t ADD PARTITION (y = '2024', m = 'a/b')")
    assert names() == ["y=2024/m=a%2Fb"] and rows(server) == []
    with pytest.raises(StoaError, match="42710"):
        server.sql("ALTER TABLE t ADD PARTITION (y = '2024', m = 'a/b')")
    server.sql("ALTER TABLE t ADD IF NOT EXISTS PARTITION (y = '2024', m = 'a/b')")
    write(store, f"{bucket}/ext/y=2024/m=a%2Fb/part-0", rows_of([1]), "parquet")
    assert rows(server) == [(1, "n1", "2024", "a/b")]
    # Hadoop's clients leave objects for directories.
    s3.put_object(Bucket=bucket, Key="ext/y=2024/m=c/", Body=b"")
    write(store, f"{bucket}/ext/y=2024/m=c/part-0", rows_of([2]), "parquet")
    assert [row[0] for row in rows(server)] == [1, 2]
    server.sql("ALTER TABLE t DROP PARTITION (m = 'c')")
    assert [row[0] for row in rows(server)] == [1] and names() == ["y=2024/m=a%2Fb"]
    assert f"ext/y=2024/m=c/part-0" in keys(s3, bucket, "ext/")
    server.sql("ALTER TABLE t RECOVER PARTITIONS")
    assert [row[0] for row in rows(server)] == [1, 2]


@pytest.mark.parametrize("kind", FORMATS)
def test_directories_are_written(server, store, s3, bucket, kind):
    location = f"s3://{bucket}/out put/ü"
    for count in (200_000, 3):
        server.sql(f"INSERT OVERWRITE DIRECTORY '{location}' STORED AS {kind} SELECT value AS id, md5(value::text) AS h FROM generate_series(1, {count}) AS s(value)")
        found = ds.dataset(f"{bucket}/out put/ü", filesystem=store, format=kind).to_table()
        assert sorted(found["id"].to_pylist()) == list(range(1, count + 1))
        assert len(set(found["h"].to_pylist())) == count
        assert all("/." not in key for key in keys(s3, bucket, "out put/"))


def test_a_location_in_the_warehouse_is_refused(server, warehouse, bucket):
    with pytest.raises(StoaError, match="42501"):
        create(server, f"{warehouse.url}/public", "parquet")
    with pytest.raises(StoaError, match="42501"):
        server.sql(f"INSERT OVERWRITE DIRECTORY '{warehouse.url}' SELECT 1")


def test_a_bucket_that_is_not_there_is_named(server):
    server.sql("CREATE EXTERNAL TABLE gone (id bigint) STORED AS ORC LOCATION 's3://no-such-bucket/x'")
    with pytest.raises(StoaError, match="no-such-bucket"):
        server.sql("SELECT * FROM gone")


def test_a_statement_that_fails_leaves_nothing(server, store, s3, bucket):
    create(server, f"s3://{bucket}/ext", "textfile")
    server.sql("INSERT INTO t VALUES (1, 'one', '2024', 'a')")
    before = keys(s3, bucket, "ext/")
    with pytest.raises(StoaError, match="22P04"):
        server.sql("INSERT OVERWRITE TABLE t PARTITION (y, m) SELECT value, CASE WHEN value = 99999 THEN E'two\\nlines' ELSE 'x' END, '2024', 'b' || value % 3 FROM generate_series(1, 100000) AS s(value)")
    assert keys(s3, bucket, "ext/") == before
    assert rows(server) == [(1, "one", "2024", "a")]


@pytest.mark.parametrize("seed", ["1"])
def test_faults_change_no_row(warehouse, proxy, store, bucket, seed):
    bad = proxy("--latency", "0ms", "--errors", "0.1", "--lost", "0.03", "--truncated", "0.1", "--seed", seed)
    warehouse.endpoint = bad.url
    server = start(warehouse)
    create(server, f"s3://{bucket}/ext", "parquet")
    for round in range(3):
        server.sql(
            f"INSERT OVERWRITE TABLE t PARTITION (y, m) SELECT value, 'n' || value, 'r{round}', 'm' || value % 5 FROM generate_series(1, 50000) AS s(value)"
        )
        server.sql(f"INSERT OVERWRITE TABLE t PARTITION (y, m) SELECT id + 1, name, y, m FROM t WHERE y = 'r{round}'")
    expected = sorted((n + 1, f"n{n}", f"r{round}", f"m{n % 5}") for n in range(1, 50001) for round in range(3))
    assert rows(server) == expected == read_by_pyarrow(store, f"{bucket}/ext", "parquet")
    faults = bad.counts()["faults"]
    assert all(faults[kind] > 0 for kind in ("error", "lost", "truncated")), faults
