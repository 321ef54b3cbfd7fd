"""Other writers on a table of Stoa's: deletes, overwrites, table maintenance, appends at one time."""

import threading

import pytest
from engines import rows_of, same_rows


def fill(stoa, table, partitioned=True):
    partitions = "PARTITIONED BY (month(day))" if partitioned else ""
    stoa.sql(
        f"CREATE TABLE {table} (id bigint, day date) {partitions}",
        f"INSERT INTO {table} SELECT value, DATE '2026-01-01' + CAST(value % 90 AS int) FROM generate_series(0, 899) AS s(value)",
    )


def check_same(stoa, spark, table):
    query = "SELECT count(*) AS n, sum(id) AS ids, min(day) AS first, max(day) AS last FROM {}"
    theirs = rows_of(spark.sql(query.format(f"stoa.{table}")))
    same_rows(stoa.sql(query.format(table)), theirs)
    same_rows(stoa.server_sql(query.format(table)), theirs)
    return theirs[0]["n"]


def test_spark_deletes_by_rewriting(stoa, spark, name):
    table = f"public.{name}"
    fill(stoa, table)
    spark.sql(f"DELETE FROM stoa.{table} WHERE id % 10 = 3")
    assert check_same(stoa, spark, table) == 810
    spark.sql(f"UPDATE stoa.{table} SET id = -id WHERE id % 10 = 4")
    assert check_same(stoa, spark, table) == 810
    spark.sql(f"DELETE FROM stoa.{table} WHERE day < DATE '2026-02-01'")
    assert check_same(stoa, spark, table) < 810
    stoa.sql(f"INSERT INTO {table} VALUES (5000, DATE '2026-01-15')")
    check_same(stoa, spark, table)


def test_deletes_in_delete_files_are_never_ignored(stoa, spark, name):
    """Merge-on-read deletes: Stoa applies them, and keeps them where it appends."""
    table = f"public.{name}"
    fill(stoa, table)
    spark.sql(f"ALTER TABLE stoa.{table} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    spark.sql(f"DELETE FROM stoa.{table} WHERE id % 10 = 3")
    assert spark.table(f"stoa.{table}.delete_files").count() > 0
    for ask in (stoa.sql, stoa.server_sql):
        assert ask(f"SELECT count(*) AS n FROM {table}") == [{"n": 810}]
    # What Stoa appends must not bring the deleted rows back for others.
    stoa.sql(f"INSERT INTO {table} VALUES (5000, DATE '2026-01-15')")
    assert spark.table(f"stoa.{table}").count() == 811


def test_spark_overwrites(stoa, spark, name):
    table = f"public.{name}"
    fill(stoa, table)
    spark.sql(f"INSERT OVERWRITE stoa.{table} SELECT id, DATE '2026-07-01' FROM range(10)")
    check_same(stoa, spark, table)
    stoa.sql(f"INSERT INTO {table} VALUES (11, DATE '2026-07-02')")
    check_same(stoa, spark, table)


def test_spark_compacts_and_expires(stoa, spark, name):
    table = f"public.{name}"
    fill(stoa, table)
    for start in range(3):
        stoa.sql(f"INSERT INTO {table} VALUES ({10000 + start}, DATE '2026-01-15')")
    spark.sql(f"CALL stoa.system.rewrite_data_files(table => '{table}', options => map('min-input-files', '2'))")
    assert check_same(stoa, spark, table) == 903
    spark.sql(f"CALL stoa.system.rewrite_manifests('{table}')")
    assert check_same(stoa, spark, table) == 903
    spark.sql(
        f"CALL stoa.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
    )
    assert check_same(stoa, spark, table) == 903
    stoa.sql(f"INSERT INTO {table} VALUES (20000, DATE '2026-03-15')")
    assert check_same(stoa, spark, table) == 904


def test_appends_at_one_time(stoa, spark, name):
    """Stoa's processes, its server and Spark append together: every row is there once, or its writer was told."""
    table = f"public.{name}"
    fill(stoa, table, partitioned=False)
    spark.sql(f"ALTER TABLE stoa.{table} SET TBLPROPERTIES ('commit.retry.num-retries'='20')")
    done, refused = [], []

    def writer(run, first):
        for row in range(first, first + 5):
            try:
                run(row)
                done.append(row)
            except Exception as error:  # the writer was told: the row must not be there
                refused.append((row, str(error)))

    insert = f"INSERT INTO {table} VALUES ({{}}, DATE '2026-01-01')"
    threads = [
        threading.Thread(target=writer, args=(lambda row: stoa.sql(insert.format(row)), 10_000)),
        threading.Thread(target=writer, args=(lambda row: stoa.server_sql(insert.format(row)), 20_000)),
        threading.Thread(
            target=writer, args=(lambda row: spark.sql(insert.format(row).replace("INTO ", "INTO stoa.")), 30_000)
        ),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stoa.server_sql(f"FLUSH TABLE {table}")  # the server's rows are in its log until then
    rows = stoa.sql(f"SELECT id FROM {table} WHERE id >= 10000 ORDER BY id")
    assert [row["id"] for row in rows] == sorted(done), refused
    assert len(done) >= 10, refused
    check_same(stoa, spark, table)


def test_stoa_keeps_what_spark_wrote_in_parquet(stoa, spark, name):
    """A table may hold data files of several formats."""
    table = f"public.{name}"
    fill(stoa, table, partitioned=False)
    spark.sql(f"ALTER TABLE stoa.{table} SET TBLPROPERTIES ('write.format.default'='parquet')")
    spark.sql(f"INSERT INTO stoa.{table} VALUES (5000, DATE '2026-01-15')")
    assert stoa.sql(f"SELECT count(*) AS n FROM {table}") == [{"n": 901}]
    assert stoa.server_sql(f"SELECT id FROM {table} WHERE id > 4000") == [{"id": 5000}]


@pytest.mark.parametrize("kind", ["rollback", "branch"])
def test_spark_moves_the_current_snapshot(stoa, spark, name, kind):
    table = f"public.{name}"
    fill(stoa, table, partitioned=False)
    first = rows_of(spark.sql(f"SELECT snapshot_id FROM stoa.{table}.snapshots"))[0]["snapshot_id"]
    stoa.sql(f"INSERT INTO {table} VALUES (5000, DATE '2026-01-15')")
    if kind == "rollback":
        spark.sql(f"CALL stoa.system.rollback_to_snapshot('{table}', {first})")
    else:
        spark.sql(f"ALTER TABLE stoa.{table} CREATE BRANCH audit")
        spark.sql(f"INSERT INTO stoa.{table}.branch_audit VALUES (6000, DATE '2026-01-15')")
    assert check_same(stoa, spark, table) == (900 if kind == "rollback" else 901)
