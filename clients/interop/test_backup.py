"""A warehouse that was restored from a backup, at another place: Spark reads and writes it, as it did the first one."""

from engines import Stoa, rows_of, same_rows


def test_spark_reads_and_writes_what_was_restored(stoa, spark, tmp_path):
    first = Stoa(stoa.binary, str(tmp_path / "first"), None)
    first.sql(
        "CREATE TABLE sold (day date, shop text, amount decimal(12, 2), tags text[]) PARTITIONED BY (month(day)) ORDER BY (shop, day)",
        """INSERT INTO sold SELECT DATE '2025-01-01' + n, 'shop ' || (n % 7), CAST(n * 1.25 AS decimal(12, 2)), ARRAY['a', 'b' || n]
           FROM generate_series(0, 120) AS s(n)""",
        "INSERT INTO sold VALUES (NULL, NULL, NULL, NULL)",
    )
    first.run("backup", str(tmp_path / "backup"), "--warehouse", first.warehouse)
    # An increment, with files that were replaced.
    first.sql("UPDATE sold SET amount = 0 WHERE shop = 'shop 3'", "DELETE FROM sold WHERE day = DATE '2025-01-05'")
    first.run("backup", str(tmp_path / "backup"), "--warehouse", first.warehouse)
    restored = Stoa(stoa.binary, str(tmp_path / "re stored"), None)
    restored.run("restore", str(tmp_path / "backup"), "--warehouse", restored.warehouse)
    # What Spark reads cannot be the first one's.
    (tmp_path / "first").rename(tmp_path / "gone")
    # Iceberg's JDBC catalog looks for tables under its own name, which has to be `stoa`: a session of its own.
    elsewhere = spark.newSession()
    elsewhere.conf.set("spark.sql.catalog.stoa.uri", f"jdbc:sqlite:file:{restored.warehouse}/catalog.db")
    elsewhere.conf.set("spark.sql.catalog.stoa.warehouse", (tmp_path / "re stored").as_uri())
    query = "SELECT day, shop, amount, tags FROM {} ORDER BY day NULLS LAST"
    theirs = rows_of(elsewhere.sql(query.format("stoa.public.sold")))
    assert len(theirs) == 121
    same_rows(restored.sql(query.format("sold")), theirs)
    sums = elsewhere.sql("SELECT shop, count(*) AS n, sum(amount) AS s FROM stoa.public.sold GROUP BY shop ORDER BY shop NULLS LAST").collect()
    expected = {}
    for n in range(121):
        if n != 4:
            rows, cents = expected.get(f"shop {n % 7}", (0, 0))
            expected[f"shop {n % 7}"] = (rows + 1, cents + (0 if n % 7 == 3 else 125 * n))
    assert {row.shop: (row.n, int(row.s * 100)) for row in sums if row.shop} == expected
    elsewhere.sql("INSERT INTO stoa.public.sold VALUES (DATE '2026-01-01', 'spark', 1.50, array('c'))")
    assert restored.sql("SELECT count(*) AS n FROM sold WHERE shop = 'spark'") == [{"n": 1}]
