"""HiveQL over PyHive: what a session speaks unless it asks for Stoa's SQL."""

import contextlib
import decimal

import pytest
from conftest import connect, rows
from pyhive.exc import OperationalError


@pytest.fixture
def hive(name):
    connection = connect(dialect="hive")
    cursor = connection.cursor()
    cursor.execute(
        f"CREATE TABLE {name} (id INT COMMENT 'a number', word STRING, tags STRING, cost DECIMAL(9,2))"
        " PARTITIONED BY (day STRING) STORED AS ORC"
    )
    cursor.execute(
        f"INSERT INTO {name} PARTITION (day='2024-05-01') VALUES (1, 'it\\'s', 'a,b', 1.50), (2, \"x\", 'b', NULL)"
    )
    yield cursor
    connection.close()


def test_statements_of_hiveql(hive, name):
    assert rows(hive, f"SELECT word, id / 2, cost FROM {name} WHERE id = '1'") == [
        ("it's", 0.5, decimal.Decimal("1.50"))
    ]
    counted = f"SELECT tag, count(*) FROM {name} LATERAL VIEW explode(split(tags, ',')) t AS tag GROUP BY tag ORDER BY tag"
    assert rows(hive, counted) == [("a", 1), ("b", 2)]
    assert rows(hive, f"SELECT id FROM {name} WHERE word = %s", ("it's",)) == [(1,)]
    assert rows(hive, f"FROM {name} SELECT count(*) WHERE `DAY` RLIKE '^2024'") == [(2,)]
    assert [column[0] for column in hive.description] == ["_c0"]


def test_lists_have_the_columns_of_hive(hive, name):
    assert rows(hive, f"SHOW PARTITIONS {name}") == [("day=2024-05-01",)]
    assert [column[0] for column in hive.description] == ["partition"]
    assert rows(hive, f"SHOW COLUMNS IN {name}") == [("id",), ("word",), ("tags",), ("cost",), ("day",)]
    assert [column[0] for column in hive.description] == ["field"]
    assert ("explode",) in rows(hive, "SHOW FUNCTIONS")
    assert [column[0] for column in hive.description] == ["tab_name"]
    assert "CREATE TABLE" in rows(hive, f"SHOW CREATE TABLE {name}")[0][0]
    assert [column[0] for column in hive.description] == ["createtab_stmt"]


@contextlib.contextmanager
def active_plan(hive, plan, *statements):
    """A resource plan with a parallelism of 4 that these statements shape; gone afterwards."""
    hive.execute(f"CREATE RESOURCE PLAN {plan} WITH QUERY_PARALLELISM=4")
    for statement in statements:
        hive.execute(statement)
    hive.execute(f"ALTER RESOURCE PLAN {plan} ENABLE ACTIVATE")
    try:
        yield
    finally:
        hive.execute("DISABLE WORKLOAD MANAGEMENT")
        hive.execute(f"DROP RESOURCE PLAN {plan}")


def test_a_resource_plan_kills_what_takes_too_long(hive, name):
    plan = f"plan_{name}"
    with active_plan(
        hive,
        plan,
        f"CREATE TRIGGER {plan}.late WHEN ELAPSED_TIME > '1 sec' DO KILL",
        f"ALTER POOL {plan}.default ADD TRIGGER late",
    ):
        assert (plan, "ACTIVE", 4) in rows(hive, "SHOW RESOURCE PLANS")
        assert [column[0] for column in hive.description] == ["rp_name", "status", "query_parallelism"]
        assert rows(hive, f"SHOW RESOURCE PLAN {plan}") == [
            (f"{plan}[status=ACTIVE,parallelism=4,defaultPool=default]",),
            (" +  default[allocFraction=1.0,schedulingPolicy=null,parallelism=4]",),
            ("     |  trigger late: if (ELAPSED_TIME > '1 sec') { KILL }",),
            ("     |  mapped for default",),
        ]
        assert rows(hive, f"SELECT path, query_parallelism FROM sys.wm_pools WHERE rp_name = '{plan}'") == [("default", 4)]
        ten = " UNION ALL ".join(["SELECT * FROM " + name] * 10)
        tables = ", ".join(f"({ten}) t{number}" for number in range(8))
        with pytest.raises(OperationalError, match="due to a trigger of pool"):
            rows(hive, f"SELECT count(*) FROM {tables} WHERE t0.id + t1.id + t2.id + t3.id + t4.id + t5.id + t6.id + t7.id = -1")
        with pytest.raises(OperationalError, match="is active"):
            hive.execute(f"DROP RESOURCE PLAN {plan}")


def test_a_session_asks_for_one_of_its_pools(hive, name):
    plan = f"plan_{name}"

    def pool(**asked):
        settings = {f"set:hivevar:{key}": value for key, value in asked.items()}
        session = connect(username="eve", configuration=settings)
        own = "SELECT pool FROM system.queries WHERE \"user\" = 'eve' AND state = 'running'"
        [(found,)] = rows(session.cursor(), own)
        session.close()
        return found

    with active_plan(
        hive,
        plan,
        f"ALTER POOL {plan}.default SET QUERY_PARALLELISM=2, ALLOC_FRACTION=0.6",
        f"CREATE POOL {plan}.etl WITH QUERY_PARALLELISM=1, ALLOC_FRACTION=0.2, SCHEDULING_POLICY='fair'",
        f"CREATE POOL {plan}.bi WITH QUERY_PARALLELISM=1, ALLOC_FRACTION=0.2",
        f"CREATE USER MAPPING 'eve' IN {plan} TO bi",
        f"CREATE APPLICATION MAPPING 'nightly' IN {plan} TO etl",
    ):
        assert pool() == pool(wmpool="bi") == f"{plan}.bi"
        assert pool(wmapp="nightly") == f"{plan}.bi", "the user's mapping counts first"
        assert pool(wmapp="nightly", wmpool="etl") == f"{plan}.etl"
        with pytest.raises(OperationalError, match="does not let .*eve.* into the pool .*etl"):
            pool(wmpool="etl")


def test_several_inserts_of_one_source(hive, cursor, name):
    for column in ("word STRING", "tag STRING"):
        hive.execute(f"CREATE TABLE {name}_{column[0]} ({column}, n BIGINT)")
    try:
        hive.execute(
            f"FROM {name} INSERT INTO TABLE {name}_w SELECT word, id WHERE id > 1"
            f" INSERT OVERWRITE TABLE {name}_t SELECT day, count(*) GROUP BY day"
        )
        assert rows(hive, f"SELECT * FROM {name}_w") == [("x", 2)]
        assert rows(hive, f"SELECT * FROM {name}_t") == [("2024-05-01", 2)]
        with pytest.raises(OperationalError, match="does not exist"):
            hive.execute(f"FROM {name} INSERT INTO {name}_w SELECT word, id INSERT INTO {name}_no SELECT id")
        assert rows(hive, f"SELECT count(*) FROM {name}_w") == [(1,)]
    finally:
        for table in ("w", "t"):
            cursor.execute(f"DROP TABLE {name}_{table}")


def test_partitions_by_name(hive, name):
    hive.execute(f"INSERT INTO {name} PARTITION (day='2024-05-02') VALUES (3, 'y', 'c', 1)")
    assert rows(hive, f"SHOW PARTITIONS {name}") == [("day=2024-05-01",), ("day=2024-05-02",)]
    assert rows(hive, f"SHOW PARTITIONS {name} PARTITION (day='2024-05-02')") == [("day=2024-05-02",)]
    assert [column[0] for column in hive.description] == ["partition"]
    hive.execute(f"ALTER TABLE {name} DROP IF EXISTS PARTITION (day<'2024-05-02')")
    assert rows(hive, f"SELECT id FROM {name}") == [(3,)]
    hive.execute(f"TRUNCATE TABLE {name} PARTITION (day='2024-05-02')")
    assert rows(hive, f"SHOW PARTITIONS {name}") == []
    with pytest.raises(OperationalError, match="no partition column"):
        hive.execute(f"ALTER TABLE {name} DROP PARTITION (id=1)")


def test_variables(hive, name):
    hive.execute("SET hivevar:lowest=2")
    assert rows(hive, f"SELECT id FROM {name} WHERE id >= ${{hivevar:lowest}}") == [(2,)]
    hive.execute("SET hive.default.nulls.last=true")
    assert rows(hive, f"SELECT cost FROM {name} ORDER BY cost") == [(decimal.Decimal("1.50"),), (None,)]
    hive.execute("SET hive.default.nulls.last=false")
    assert rows(hive, f"SELECT cost FROM {name} ORDER BY cost") == [(None,), (decimal.Decimal("1.50"),)]


def test_what_superset_asks_for(hive, name):
    grain = f"SELECT date_format(day, 'yyyy-MM-01'), count(*) FROM {name} GROUP BY date_format(day, 'yyyy-MM-01')"
    assert rows(hive, grain) == [("2024-05-01", 2)]
    grain = f"SELECT from_unixtime(unix_timestamp(day, 'yyyy-MM-dd'), 'yyyy-MM-dd 00:00:00') AS g FROM {name} LIMIT 1"
    assert rows(hive, grain) == [("2024-05-01 00:00:00",)]


def test_what_is_refused_and_the_other_dialect(hive):
    with pytest.raises(OperationalError, match="scripts are off"):
        hive.execute("SELECT TRANSFORM (1) USING 'cat'")
    with pytest.raises(OperationalError, match="file_access is off"):
        hive.execute("CREATE EXTERNAL TABLE t (a INT) LOCATION '/x'")
    hive.execute("SET stoa.dialect=postgres")
    assert rows(hive, "SELECT 7 / 2") == [(3,)]
    hive.execute("SET stoa.dialect=hive")
    assert rows(hive, "SELECT 7 / 2") == [(3.5,)]
