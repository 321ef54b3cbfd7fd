"""External tables in a cluster of three daemons, whose catalog is in PostgreSQL: what one defines or writes, the others
see. Their files are in S3; pyarrow is the witness.
"""

import threading

import pyarrow.dataset as ds
import pytest

from test_cluster import Daemons, database  # noqa: F401
from test_external import keys, read_by_pyarrow, rows, store  # noqa: F401
from test_partitions import place, until  # noqa: F401
from warehouse import StoaError


@pytest.fixture
def three(gateway, bucket, database, tmp_path):  # noqa: F811
    folder = tmp_path / "files"
    folder.mkdir()
    all_of_them = Daemons(gateway, bucket, database, tmp_path, "--file-access", str(folder))
    yield [all_of_them.start() for _ in range(3)], folder
    all_of_them.end()


def create(daemon, bucket):
    daemon.sql(f"CREATE EXTERNAL TABLE t (id bigint, name text) PARTITIONED BY (y text, m text) STORED AS parquet LOCATION 's3://{bucket}/ext'")


def test_what_one_defines_and_writes_all_see(three, store, s3, bucket):  # noqa: F811
    daemons, _ = three
    one, two, last = daemons
    create(one, bucket)
    expected = []
    for number, daemon in enumerate(daemons * 2):
        daemon.sql(f"INSERT INTO t VALUES ({number}, 'n{number}', '2024', 'm{number % 2}')")
        expected.append((number, f"n{number}", "2024", f"m{number % 2}"))
        for other in daemons:
            assert rows(other) == expected
    assert read_by_pyarrow(store, f"{bucket}/ext", "parquet") == expected
    two.sql("INSERT OVERWRITE TABLE t PARTITION (y, m) SELECT id, 'over', y, m FROM t WHERE m = 'm0'")
    expected = sorted((n, "over" if m == "m0" else name, y, m) for n, name, y, m in expected)
    for daemon in daemons:
        assert rows(daemon) == expected
    assert read_by_pyarrow(store, f"{bucket}/ext", "parquet") == expected

    # Partitions are the table's, whoever drops them.
    last.sql("ALTER TABLE t DROP PARTITION (m = 'm0')")
    for daemon in daemons:
        assert {row[3] for row in rows(daemon)} == {"m1"}
    one.sql("INSERT INTO t VALUES (100, 'back', '2024', 'm0')")
    expected.append((100, "back", "2024", "m0"))
    for daemon in daemons:
        assert rows(daemon) == sorted(expected)
    # So are its columns and its name.
    two.sql("ALTER TABLE t ADD COLUMN more int")
    one.sql("ALTER TABLE t RENAME TO u")
    assert last.sql("SELECT count(*) AS n, count(more) AS more FROM u") == [{"n": len(expected), "more": 0}]
    last.sql("DROP TABLE u")
    for daemon in daemons:
        with pytest.raises(StoaError, match="42P01"):
            daemon.sql("SELECT * FROM u")
    assert len(keys(s3, bucket, "ext/")) > 0


def test_all_write_at_once(three, store, bucket):  # noqa: F811
    daemons, _ = three
    create(daemons[0], bucket)
    failed = []

    def write(number, daemon):
        try:
            for round in range(5):
                first = number * 100_000 + round * 1000
                daemon.sql(f"INSERT INTO t SELECT value, 'x', 'y{number}', 'm' || value % 2 FROM generate_series({first + 1}, {first + 1000}) AS s(value)")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=pair) for pair in enumerate(daemons)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed, failed
    expected = sorted(
        (n, "x", f"y{number}", f"m{n % 2}") for number in range(3) for n in range(number * 100_000 + 1, number * 100_000 + 5001)
    )
    assert read_by_pyarrow(store, f"{bucket}/ext", "parquet") == expected
    for daemon in daemons:
        assert rows(daemon) == expected


def test_directories_of_one_machine_are_for_daemons_of_that_machine(three):
    """All daemons here are on one machine, whose disk they share."""
    daemons, folder = three
    daemons[0].sql(f"CREATE EXTERNAL TABLE t (id bigint, name text) PARTITIONED BY (y text, m text) STORED AS orc LOCATION '{folder}/t'")
    daemons[1].sql("INSERT INTO t VALUES (1, 'x', 'a', 'b')")
    for daemon in daemons:
        assert rows(daemon) == [(1, "x", "a", "b")]
    found = ds.dataset(folder / "t", format="orc", partitioning="hive").to_table()
    assert found["id"].to_pylist() == [1]


def test_directories_of_one_machine_are_refused_to_others(place):  # noqa: F811
    """Daemons on machines with names of their own."""
    folder = place.directory / "files"
    folder.mkdir()
    flags = ["--file-access", str(folder)]
    one = place.start("one", flags, host="first")
    define = f"CREATE EXTERNAL TABLE t (id bigint) STORED AS orc LOCATION '{folder}/t'"
    one.sql(define)
    one.sql("INSERT INTO t VALUES (1)")
    assert [int(row[0]) for row in one.sql("SELECT id FROM t")] == [1]
    two = place.start("two", flags, host="second")
    until("both are up", lambda: all(daemon.states() == ["up"] * 2 for daemon in (one, two)))
    for daemon, other in ((one, "second"), (two, "first")):
        for statement in ("SELECT id FROM t", "INSERT INTO t VALUES (2)", define.replace("TABLE t", "TABLE u")):
            with pytest.raises(Exception, match="0A000") as error:
                daemon.sql(statement)
            assert f"such as {other}" in str(error.value) and "s3://" in str(error.value)
    # The same directory on all machines, as here, has to be said.
    one.sql("ALTER TABLE t SET TBLPROPERTIES ('stoa.shared-directory' = 'true')")
    one.sql("INSERT INTO t VALUES (2)")
    assert sorted(int(row[0]) for row in two.sql("SELECT id FROM t")) == [1, 2]
