"""pgbouncer in transaction mode: clients share one connection to the server, transaction by transaction."""

import concurrent.futures
import os
import shutil

import pooled
import psycopg
import pytest

if not (shutil.which("pgbouncer") or os.path.exists("/usr/sbin/pgbouncer")):
    pytest.skip("pgbouncer is not installed (package pgbouncer)", allow_module_level=True)


@pytest.fixture(scope="module")
def port():
    with pooled.running() as port:
        yield port


@pytest.fixture
def client(port):
    clients = []

    def connect(**options):
        # Prepared statements stay with the connection to the server, so drivers are told to make none.
        clients.append(psycopg.connect(port=port, autocommit=True, prepare_threshold=None, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


def test_many_clients_share_one_connection(client, table):
    name = table("n bigint")
    clients = [client() for _ in range(10)]

    def work(number):
        for n in range(5):
            clients[number].execute(f"INSERT INTO {name} VALUES (%s)", [number * 5 + n])
        return clients[number].execute(f"SELECT count(*) FROM {name} WHERE n / 5 = %s", [number]).fetchone()[0]

    with concurrent.futures.ThreadPoolExecutor(10) as threads:
        assert list(threads.map(work, range(10))) == [5] * 10
    assert clients[0].execute(f"SELECT count(*) FROM {name}").fetchone()[0] == 50


def test_transactions_are_kept_apart(client, table):
    name = table("n bigint")
    one, other = client(), client()
    with one.transaction():
        one.execute(f"INSERT INTO {name} VALUES (1)")
        with pytest.raises(psycopg.Error):
            with one.transaction():
                one.execute("SELECT 1 / 0")
        one.execute(f"INSERT INTO {name} VALUES (2)")
    with pytest.raises(psycopg.errors.UndefinedTable):
        with other.transaction():
            other.execute(f"INSERT INTO {name} VALUES (3)")
            other.execute("SELECT * FROM nothing")
    assert [n for (n,) in other.execute(f"SELECT n FROM {name} ORDER BY n")] == [1, 2]


def test_settings_that_the_pooler_follows(client):
    one, other = client(options=""), client()
    one.execute("SET TimeZone = 'Asia/Tokyo'")
    other.execute("SET TimeZone = 'UTC'")
    one.execute("SET application_name = 'one'")
    show = lambda of, setting: of.execute(f"SHOW {setting}").fetchone()[0]
    assert (show(one, "TimeZone"), show(other, "TimeZone")) == ("Asia/Tokyo", "UTC")
    assert show(one, "application_name") == "one"
    with one.transaction():
        one.execute("SET LOCAL statement_timeout = '5s'")
        assert show(one, "statement_timeout") == "5s"
    assert show(other, "statement_timeout") == "0"


def test_temporary_tables_cursors_and_copy_within_a_transaction(client, table):
    name = table("n bigint")
    one = client()
    with one.transaction():
        one.execute("CREATE TEMP TABLE pooled (n bigint)")
        with one.cursor().copy("COPY pooled FROM STDIN") as copy:
            for n in range(100):
                copy.write_row([n])
        with one.cursor("reading") as cursor:
            cursor.execute("SELECT n FROM pooled ORDER BY n")
            assert len(cursor.fetchmany(60)) == 60
        one.execute(f"INSERT INTO {name} SELECT * FROM pooled")
    # A temporary table stays with the connection to the server, which the clients share.
    client().execute("DROP TABLE pooled")
    assert client().execute(f"SELECT count(*) FROM {name}").fetchone()[0] == 100


def test_a_query_is_cancelled_through_the_pooler(client):
    one = client()
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        asked = thread.submit(one.execute, "SELECT count(*) FROM generate_series(1, 100000000000) s")
        while not asked.done():
            one.cancel_safe(timeout=5)
            concurrent.futures.wait([asked], timeout=0.2)
        with pytest.raises(psycopg.errors.QueryCanceled):
            asked.result()
    assert client().execute("SELECT 1").fetchone() == (1,)


def test_a_pools_reset(port, conn):
    # What a pooler sends between sessions.
    conn.execute("SET statement_timeout = '5s'")
    conn.execute("DISCARD ALL")
    assert conn.execute("SHOW statement_timeout").fetchone()[0] == "0"
