"""Schema changes by one engine, seen by the other: columns are known by field id, never by name."""

from engines import rows_of, same_rows


def check_same(stoa, spark, table, expected):
    """Both engines, embedded and on the server, answer `expected` for SELECT * ordered by id."""
    query = "SELECT * FROM {} ORDER BY id"
    theirs = rows_of(spark.sql(query.format(f"stoa.{table}")))
    assert theirs == expected
    same_rows(stoa.sql(query.format(table)), theirs)
    same_rows(stoa.server_sql(query.format(table)), theirs)


def test_stoa_changes_and_spark_follows(stoa, spark, name):
    table = f"public.{name}"
    stoa.sql(f"CREATE TABLE {table} (id int, a varchar, b int)", f"INSERT INTO {table} VALUES (1, 'one', 10)")
    check_same(stoa, spark, table, [{"id": 1, "a": "one", "b": 10}])

    stoa.sql(f"ALTER TABLE {table} ADD COLUMN c date", f"INSERT INTO {table} VALUES (2, 'two', 20, DATE '2026-01-02')")
    theirs = rows_of(spark.sql(f"SELECT id, CAST(c AS string) AS c FROM stoa.{table} ORDER BY id"))
    assert theirs == [{"id": 1, "c": None}, {"id": 2, "c": "2026-01-02"}]

    stoa.sql(f"ALTER TABLE {table} DROP COLUMN c")
    stoa.sql(f"ALTER TABLE {table} RENAME COLUMN a TO label", f"INSERT INTO {table} VALUES (3, 'three', 30)")
    check_same(
        stoa,
        spark,
        table,
        [{"id": 1, "label": "one", "b": 10}, {"id": 2, "label": "two", "b": 20}, {"id": 3, "label": "three", "b": 30}],
    )

    # A new column under a dropped name is another column: the old values stay gone.
    stoa.sql(f"ALTER TABLE {table} DROP COLUMN b", f"ALTER TABLE {table} ADD COLUMN b int")
    check_same(stoa, spark, table, [{"id": i, "label": x, "b": None} for i, x in ((1, "one"), (2, "two"), (3, "three"))])


def test_spark_changes_and_stoa_follows(stoa, spark, name):
    table = f"public.{name}"
    stoa.sql(f"CREATE TABLE {table} (id int, a varchar, b int, f real)", f"INSERT INTO {table} VALUES (1, 'one', 10, 0.5)")
    spark.sql(f"ALTER TABLE stoa.{table} ADD COLUMN c bigint FIRST")
    spark.sql(f"ALTER TABLE stoa.{table} RENAME COLUMN a TO label")
    spark.sql(f"ALTER TABLE stoa.{table} ALTER COLUMN b TYPE bigint")
    spark.sql(f"ALTER TABLE stoa.{table} ALTER COLUMN f TYPE double")
    spark.sql(f"INSERT INTO stoa.{table} (id, label, b, f, c) VALUES (2, 'two', 20000000000, 0.25, 7)")
    check_same(
        stoa,
        spark,
        table,
        [
            {"c": None, "id": 1, "label": "one", "b": 10, "f": 0.5},
            {"c": 7, "id": 2, "label": "two", "b": 20000000000, "f": 0.25},
        ],
    )
    # A filter on a widened column sees values of before and after.
    assert stoa.sql(f"SELECT id FROM {table} WHERE b > 5 ORDER BY id") == [{"id": 1}, {"id": 2}]
    assert stoa.sql(f"SELECT id FROM {table} WHERE b > 15 ORDER BY id") == [{"id": 2}]

    spark.sql(f"ALTER TABLE stoa.{table} DROP COLUMN label")
    spark.sql(f"ALTER TABLE stoa.{table} ADD COLUMN label string")
    stoa.sql(f"INSERT INTO {table} (id, label) VALUES (3, 'three')")
    theirs = rows_of(spark.sql(f"SELECT id, label FROM stoa.{table} ORDER BY id"))
    assert theirs == [{"id": 1, "label": None}, {"id": 2, "label": None}, {"id": 3, "label": "three"}]
    same_rows(stoa.sql(f"SELECT id, label FROM {table} ORDER BY id"), theirs)


def test_pyiceberg_changes_and_stoa_follows(stoa, iceberg, name):
    from pyiceberg.types import DateType

    table = f"public.{name}"
    stoa.sql(f"CREATE TABLE {table} (id int, a varchar)", f"INSERT INTO {table} VALUES (1, 'one')")
    with iceberg.load_table(table).update_schema() as change:
        change.add_column("day", DateType())
        change.rename_column("a", "label")
    stoa.sql(f"INSERT INTO {table} VALUES (2, 'two', DATE '2026-01-02')")
    rows = stoa.sql(f"SELECT id, label, day FROM {table} ORDER BY id")
    same_rows(rows, rows_of(iceberg.load_table(table).scan().to_arrow().sort_by("id")))
    assert rows[0]["day"] is None


def test_renamed_dropped_and_listed(stoa, spark, iceberg, name):
    stoa.sql(f"CREATE TABLE public.{name} (id int)", f"INSERT INTO public.{name} VALUES (1)")
    stoa.sql(f"ALTER TABLE public.{name} RENAME TO {name}_b")
    listed = {row["tableName"] for row in rows_of(spark.sql("SHOW TABLES IN stoa.public"))}
    assert f"{name}_b" in listed and name not in listed
    spark.sql(f"ALTER TABLE stoa.public.{name}_b RENAME TO public.{name}_c")
    assert stoa.sql(f"SELECT id FROM public.{name}_c") == [{"id": 1}]
    assert ("public", f"{name}_c") in iceberg.list_tables("public")
    stoa.sql(f"DROP TABLE public.{name}_c")
    assert ("public", f"{name}_c") not in iceberg.list_tables("public")
    assert not spark.catalog.tableExists(f"stoa.public.{name}_c")


def test_properties_by_spark_are_kept_by_stoa(stoa, spark, name):
    stoa.sql(f"CREATE TABLE public.{name} (id int)")
    spark.sql(f"ALTER TABLE stoa.public.{name} SET TBLPROPERTIES ('owner.team'='ads', 'comment'='by Spark')")
    stoa.sql(f"INSERT INTO public.{name} VALUES (1)", f"ALTER TABLE public.{name} ADD COLUMN a int")
    properties = {row["key"]: row["value"] for row in rows_of(spark.sql(f"SHOW TBLPROPERTIES stoa.public.{name}"))}
    assert properties["owner.team"] == "ads"
