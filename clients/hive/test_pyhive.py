"""PyHive over each transport: types, parameters, errors, metadata by statements, large results, asynchronous queries."""

import datetime
import decimal
import time

import pytest
from conftest import PORT, TRANSPORTS, connect, rows
from pyhive import hive
from pyhive.exc import OperationalError, ProgrammingError
from TCLIService.ttypes import TOperationState


@pytest.fixture(params=TRANSPORTS)
def each(request):
    connection = connect(transport=request.param)
    yield connection.cursor()
    connection.close()


def test_values_come_as_they_went(each, name):
    each.execute(
        f"CREATE TABLE {name} (a bigint, b text, c decimal(9, 2), d date, e timestamp, f boolean, g bytea,"
        " h double precision, i integer, j bigint[])"
    )
    each.execute(
        f"INSERT INTO {name} VALUES (1, 'größer', 1.50, '2020-01-02', '2020-01-02 03:04:05.5', true,"
        " decode('6162', 'hex'), 1.5, -7, ARRAY[1, NULL]), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    found = rows(each, f"SELECT * FROM `default`.`{name}` ORDER BY a")
    at = datetime.datetime(2020, 1, 2, 3, 4, 5, 500000)
    day = found[0][3]
    assert str(day) == "2020-01-02"
    assert found == [
        (1, "größer", decimal.Decimal("1.50"), day, at, True, b"ab", 1.5, -7, "[1,null]"),
        (2, *[None] * 9),
    ]
    types = [column[1] for column in each.description]
    assert types[:4] == ["BIGINT_TYPE", "STRING_TYPE", "DECIMAL_TYPE", "DATE_TYPE"]


@pytest.mark.parametrize("value", ["it's", "\\", "\\' OR 1=1 --", "a\nb\t", '"x"', "`x`", "%s", "ä€😀", ""])
def test_parameters_keep_their_values(cursor, value):
    assert rows(cursor, "SELECT %s, length(%s)", (value, value)) == [(value, len(value))]


def test_a_large_result_comes_whole(each):
    sql = "SELECT n, 'row ' || n AS word, nullif(n % 3, 0) AS part FROM generate_series(1, 50000) AS t(n)"
    found = rows(each, sql)
    assert len(found) == 50000
    assert sum(row[0] for row in found) == 50000 * 50001 // 2
    assert all(row[1] == f"row {row[0]}" and row[2] == (row[0] % 3 or None) for row in found)


def test_errors_say_what_and_the_connection_goes_on(each):
    for sql, said in [
        ("SELECT * FROM nowhere", "SemanticException"),
        ("SELEC 1", "ParseException"),
        ("SELECT 1 / (n - 3) FROM generate_series(1, 5) AS t(n)", "division by zero"),
        ("USE nowhere", "Database does not exist: nowhere"),
    ]:
        with pytest.raises(OperationalError, match=said):
            each.execute(sql)
    assert rows(each, "SELECT 1") == [(1,)]
    each.execute("SET x=1")
    with pytest.raises(ProgrammingError):
        each.fetchall()


def test_times_with_a_zone_are_those_of_the_session(each):
    each.execute("SET TIME ZONE 'Asia/Tokyo'")
    moment = "SELECT '2024-07-01 12:00:00.25+00'::timestamp with time zone"
    assert rows(each, moment) == [(datetime.datetime(2024, 7, 1, 21, 0, 0, 250000),)]
    each.execute("SET TIME ZONE 'America/New_York'")
    assert rows(each, moment) == [(datetime.datetime(2024, 7, 1, 8, 0, 0, 250000),)]


def test_databases_and_tables(each, name):
    database = f"db_{name}"
    each.execute(f"CREATE SCHEMA {database}")
    assert ("default",) in rows(each, "SHOW DATABASES")
    assert rows(each, f"SHOW SCHEMAS LIKE '{database}'") == [(database,)]
    each.execute(f"USE `{database}`")
    each.execute("CREATE TABLE `Mixed` (`a` bigint)")
    each.execute("CREATE TABLE ads (day date, account bigint, price decimal(9,2)) PARTITIONED BY (day)")
    each.execute("CREATE VIEW ads_view AS SELECT account FROM ads")
    assert rows(each, "SHOW TABLES") == [("Mixed",), ("ads",), ("ads_view",)]
    assert rows(each, f"SHOW TABLES IN {database} LIKE 'ads*'") == [("ads",), ("ads_view",)]
    assert rows(each, "SHOW VIEWS") == [("ads_view",)]
    described = rows(each, f"DESCRIBE {database}.ads")
    assert described[:3] == [("day", "date", ""), ("account", "bigint", ""), ("price", "decimal(9,2)", "")]
    assert described[3:] == [
        ("", "", ""),
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("day", "date", ""),
    ]
    assert ("Database:", database, "") in rows(each, "DESCRIBE FORMATTED ads")
    assert rows(each, "SELECT current_database()") == [(database,)]
    for table in ("VIEW ads_view", "TABLE ads", "TABLE `Mixed`", f"SCHEMA {database}"):
        each.execute(f"DROP {table}")


def test_sessions_begin_in_a_database(cursor, name):
    cursor.execute(f"CREATE SCHEMA db_{name}")
    connection = connect(database=f"db_{name}")
    assert rows(connection.cursor(), "SELECT current_database()") == [(f"db_{name}",)]
    connection.close()
    cursor.execute(f"DROP SCHEMA db_{name}")
    with pytest.raises(OperationalError, match="Database does not exist"):
        connect(database="nowhere")


def test_configuration_is_kept(name):
    connection = connect(configuration={"hive.exec.parallel": "true", "mine": "1"})
    cursor = connection.cursor()
    assert rows(cursor, "SET hive.exec.parallel") == [("hive.exec.parallel=true",)]
    assert ("mine=1",) in rows(cursor, "SET")
    assert rows(cursor, "SET not.there") == [("not.there is undefined",)]
    connection.close()


def test_asynchronous_queries_are_watched_and_cancelled(cursor):
    endless = "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 8"
    cursor.execute(endless, async_=True)
    assert cursor.poll(get_progress_update=True).operationState == TOperationState.RUNNING_STATE
    assert any("Executing command" in line for line in cursor.fetch_logs())
    cursor.cancel()
    status = cursor.poll()
    deadline = time.monotonic() + 60
    while status.operationState == TOperationState.RUNNING_STATE and time.monotonic() < deadline:
        status = cursor.poll()
    assert status.operationState == TOperationState.CANCELED_STATE
    cursor.execute("SELECT n FROM generate_series(1, 3) AS t(n)", async_=True)
    while cursor.poll().operationState == TOperationState.RUNNING_STATE:
        pass
    assert cursor.fetchall() == [(1,), (2,), (3,)]


def test_who_goes_away_cancels_its_query(cursor):
    other = connect()
    running = other.cursor()
    running.execute(
        "SELECT count(*) FROM generate_series(1, 1000000000001) AS t(n) WHERE n % 7 = 8", async_=True
    )
    asked = (
        "SELECT count(*) FROM system.queries WHERE state = 'running' AND sql LIKE '%1000000000001%'"
        " AND sql NOT LIKE '%system.queries%'"
    )

    def wait_for(count):
        deadline = time.monotonic() + 60
        while rows(cursor, asked) != [(count,)]:
            assert time.monotonic() < deadline

    wait_for(1)
    # The socket, without a goodbye.
    other._transport.close()
    wait_for(0)


def test_queries_are_listed_with_their_protocol_and_user(cursor):
    assert rows(cursor, "SELECT protocol, \"user\" FROM system.queries WHERE sql LIKE '%mark_4711%' LIMIT 1") == [
        ("hive", "me")
    ]


def test_kill_ends_a_query_of_another_session(cursor):
    other = connect()
    running = other.cursor()
    running.execute(
        "SELECT count(*) FROM generate_series(1, 1000000000002) AS t(n) WHERE n % 7 = 8", async_=True
    )
    found, deadline = [], time.monotonic() + 60
    while not found:
        assert time.monotonic() < deadline
        found = rows(
            cursor,
            "SELECT id FROM system.queries WHERE state = 'running' AND sql LIKE '%1000000000002%'"
            " AND sql NOT LIKE '%system.queries%'",
        )
    cursor.execute(f"KILL QUERY {found[0][0]}")
    status = running.poll()
    while status.operationState == TOperationState.RUNNING_STATE and time.monotonic() < deadline:
        status = running.poll()
    assert status.operationState == TOperationState.CANCELED_STATE
    other.close()


def test_a_terminated_session_ends(cursor):
    other = connect()
    pid = rows(other.cursor(), "SELECT pg_backend_pid()")[0][0]
    assert rows(cursor, f"SELECT pg_terminate_backend({pid})") == [(True,)]
    with pytest.raises(Exception):
        other.cursor().execute("SELECT 1")


def test_more_operations_than_a_session_may_have(cursor):
    connection = connect(transport="nosasl")
    cursors = []
    with pytest.raises(OperationalError, match="open operations"):
        for _ in range(1000):
            cursors.append(connection.cursor())
            cursors[-1].execute("SELECT 1")
    assert 100 <= len(cursors) < 1000
    connection.close()
