"""What Stoa changes in a table, other engines see: DELETE, UPDATE, MERGE, overwrites, compaction, expiry, cells."""

import subprocess

from engines import rows_of, same_rows

QUERY = "SELECT count(*) AS n, sum(id) AS ids, sum(v) AS vs, min(day) AS first, max(day) AS last FROM {}"


def fill(stoa, table):
    stoa.server_sql(f"CREATE TABLE {table} (id bigint, v int, day date) PARTITIONED BY (month(day)) ORDER BY (id)")
    stoa.server_sql(
        f"INSERT INTO {table} SELECT value, CAST(value % 7 AS int), DATE '2026-01-01' + CAST(value % 90 AS int) "
        "FROM generate_series(0, 899) AS s(value)"
    )


def check_same(stoa, spark, iceberg, table):
    """All engines have the same rows once the fresh ones are in files."""
    stoa.server_sql(f"FLUSH TABLE {table}")
    ours = stoa.server_sql(QUERY.format(table))
    same_rows(ours, rows_of(spark.sql(QUERY.format(f"stoa.{table}"))))
    read = iceberg.load_table(table).scan().to_arrow()
    assert read.num_rows == ours[0]["n"]
    assert sum(read["id"].to_pylist()) == ours[0]["ids"]
    return ours[0]["n"]


def test_stoa_deletes_updates_and_merges(stoa, spark, iceberg, name):
    table = f"public.{name}"
    fill(stoa, table)
    stoa.server_sql(f"DELETE FROM {table} WHERE id % 10 = 3")
    assert check_same(stoa, spark, iceberg, table) == 810
    stoa.server_sql(f"UPDATE {table} SET v = v + 100, day = day + 31 WHERE id % 10 = 4")
    assert check_same(stoa, spark, iceberg, table) == 810
    stoa.server_sql(
        f"MERGE INTO {table} AS t USING (SELECT value AS id FROM generate_series(890, 909) AS s(value)) AS s ON t.id = s.id "
        "WHEN MATCHED AND t.v > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = -1 "
        "WHEN NOT MATCHED THEN INSERT (id, v, day) VALUES (s.id, 0, DATE '2026-05-01')"
    )
    merged = check_same(stoa, spark, iceberg, table)
    assert 800 < merged < 830
    # Spark goes on from there.
    spark.sql(f"DELETE FROM stoa.{table} WHERE v = -1")
    assert check_same(stoa, spark, iceberg, table) < merged


def test_stoa_overwrites_and_truncates(stoa, spark, iceberg, name):
    table = f"public.{name}"
    fill(stoa, table)
    stoa.server_sql(f"DELETE FROM {table} WHERE day < DATE '2026-02-01'")
    left = check_same(stoa, spark, iceberg, table)
    assert left == 590
    stoa.server_sql(f"TRUNCATE {table}")
    assert check_same_count(stoa, spark, table) == 0
    stoa.server_sql(f"INSERT INTO {table} VALUES (1, 2, DATE '2026-01-01')")
    assert check_same(stoa, spark, iceberg, table) == 1


def check_same_count(stoa, spark, table):
    ours = stoa.server_sql(f"SELECT count(*) AS n FROM {table}")[0]["n"]
    assert spark.table(f"stoa.{table}").count() == ours
    return ours


def test_stoa_compacts_and_expires(stoa, spark, iceberg, name):
    table = f"public.{name}"
    fill(stoa, table)
    for start in range(8):
        stoa.server_sql(f"INSERT INTO {table} VALUES ({10000 + start}, 1, DATE '2026-01-15')")
        stoa.server_sql(f"FLUSH TABLE {table}")
    before = spark.table(f"stoa.{table}.files").count()
    stoa.server_sql(f"COMPACT TABLE {table} FULL")
    assert check_same(stoa, spark, iceberg, table) == 908
    after = spark.table(f"stoa.{table}.files").count()
    assert after < before
    stoa.server_sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')")
    stoa.server_sql(f"EXPIRE SNAPSHOTS FROM {table}")
    # Snapshots of the last ten minutes stay, for those who read them.
    assert check_same(stoa, spark, iceberg, table) == 908
    # Spark may still look after it, too.
    spark.sql(f"CALL stoa.system.rewrite_data_files(table => '{table}', options => map('min-input-files', '2'))")
    assert check_same(stoa, spark, iceberg, table) == 908


def test_stoa_rolls_back(stoa, spark, iceberg, name):
    table = f"public.{name}"
    fill(stoa, table)
    stoa.server_sql(f"FLUSH TABLE {table}")
    version = stoa.server_sql(f'SELECT snapshot_id FROM "{name}$history" ORDER BY made_current_at DESC LIMIT 1')[0]["snapshot_id"]
    held = stoa.server_sql(f"SELECT count(*) AS n FROM {table}")[0]["n"]
    stoa.server_sql(f"DELETE FROM {table}")
    stoa.server_sql(f"INSERT INTO {table} VALUES (10000, 1, DATE '2026-01-15')")
    stoa.server_sql(f"ALTER TABLE {table} ROLLBACK TO VERSION {version}")
    assert check_same(stoa, spark, iceberg, table) == held
    stoa.server_sql(f"INSERT INTO {table} VALUES (10001, 1, DATE '2026-01-15')")
    stoa.server_sql(f"FLUSH TABLE {table}")
    assert check_same(stoa, spark, iceberg, table) == held + 1
    # For the other engines, too, all versions are there.
    assert spark.sql(f"SELECT count(*) AS n FROM stoa.{table} VERSION AS OF {version}").collect()[0]["n"] == held
    iceberg_table = iceberg.load_table(table)
    assert [snapshot.snapshot_id for snapshot in iceberg_table.snapshots()].count(int(version)) == 1


def test_cells_are_a_table_like_others(stoa, spark, iceberg, name):
    """Other engines see every cell that was written; Stoa's SQL and HQL, those that can be seen."""
    statements = (
        f"CREATE TABLE {name} (tag, note); "
        f"INSERT INTO {name} VALUES ('fig', 'tag:good', 'ripe'), ('fig', 'note', 'old'), ('plum', 'note', 'x'); "
        f"INSERT INTO {name} VALUES ('fig', 'note', 'new'); DELETE * FROM {name} WHERE ROW = 'plum';"
    )
    subprocess.run(
        [stoa.binary, "hql", "--batch", "--silent", "--url", f"http://127.0.0.1:{stoa.http_port}", "-e", statements],
        check=True,
    )
    assert stoa.server_sql(f"SELECT row, tag, note FROM {name}") == [{"row": "fig", "tag": "ripe", "note": "new"}]
    seen = stoa.server_sql(f'SELECT family, value FROM "{name}$cells" ORDER BY family, timestamp_ns')
    assert seen == [
        {"family": "note", "value": "old"},
        {"family": "note", "value": "new"},
        {"family": "tag", "value": "ripe"},
    ]
    stoa.server_sql(f"FLUSH TABLE {name}")
    raw = rows_of(spark.sql(f"SELECT row, family, kind, CAST(value AS STRING) AS value FROM stoa.public.{name}"))
    assert len(raw) == 5
    values = {row["value"] for row in raw if row["row"] == "fig"}
    assert values == {"ripe", "old", "new"}
    assert iceberg.load_table(f"public.{name}").scan(row_filter="row == 'plum'").to_arrow().num_rows == 2
    stoa.server_sql(f"COMPACT TABLE {name} FULL")
    assert {row["row"] for row in rows_of(spark.sql(f"SELECT row FROM stoa.public.{name}"))} == {"fig"}
    assert stoa.server_sql(f"SELECT count(*) AS n FROM {name}") == [{"n": 1}]
