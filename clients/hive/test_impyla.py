"""impyla: Cloudera's client, in its mode for Hive."""

import decimal

import pytest
from conftest import PORT
from impala.dbapi import connect
from impala.error import HiveServer2Error


@pytest.fixture(params=["NOSASL", "PLAIN"])
def cursor(request):
    connection = connect("127.0.0.1", PORT, auth_mechanism=request.param, user="me", password="any")
    cursor = connection.cursor()
    cursor.execute("SET stoa.dialect=postgres")
    yield cursor
    connection.close()


def test_queries_types_and_parameters(cursor):
    cursor.execute("SELECT 1::bigint AS a, %s AS b, 1.50::decimal(9,2) AS c, NULL::date AS d", ("it's",))
    assert [column[0] for column in cursor.description] == ["a", "b", "c", "d"]
    assert cursor.fetchall() == [(1, "it's", decimal.Decimal("1.50"), None)]


def test_a_large_result(cursor):
    cursor.execute("SELECT n FROM generate_series(1, 30000) AS t(n)")
    assert sum(row[0] for row in cursor) == 30000 * 30001 // 2


def test_metadata(cursor):
    cursor.execute("CREATE TABLE IF NOT EXISTS impyla_t (a bigint, b text)")
    cursor.get_databases()
    assert "default" in [row[0] for row in cursor]
    assert cursor.table_exists("impyla_t", "default")
    schema = cursor.get_table_schema("impyla_t", "default")
    assert [column[0] for column in schema] == ["a", "b"]
    cursor.execute("DROP TABLE impyla_t")


def test_errors_and_logs(cursor):
    with pytest.raises(HiveServer2Error, match="SemanticException"):
        cursor.execute("SELECT * FROM nowhere")
    cursor.execute("SELECT 1")
    assert "Completed" in cursor.get_log()
    assert cursor.fetchall() == [(1,)]


def test_asynchronous_execution(cursor):
    cursor.execute_async("SELECT count(*) FROM generate_series(1, 1000) AS t(n)")
    while cursor.is_executing():
        pass
    assert cursor.fetchall() == [(1000,)]
