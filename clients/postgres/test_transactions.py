"""Transactions as psycopg's users have them: a block begins with the first statement and ends with
commit() or rollback(). Scripts of two sessions give the same results as on a real PostgreSQL."""

import concurrent.futures
import os
import time
import uuid

import psycopg
import pytest

STATUS = psycopg.pq.TransactionStatus


def seen(connection, name):
    return [k for (k,) in connection.execute(f"SELECT k FROM {name} ORDER BY k").fetchall()]


def refused(connection, statement, sqlstate):
    with pytest.raises(psycopg.Error) as error:
        connection.execute(statement)
    assert error.value.sqlstate == sqlstate, statement


def test_rows_of_a_transaction_are_its_own_until_commit(conn, table):
    one, other = table("k bigint"), table("k bigint")
    with psycopg.connect() as mine:
        assert mine.info.transaction_status == STATUS.IDLE
        mine.execute(f"INSERT INTO {one} VALUES (1)")
        mine.cursor().executemany(f"INSERT INTO {one} VALUES (%s)", [(2,), (3,)])
        with mine.cursor().copy(f"COPY {other} FROM STDIN") as copy:
            copy.write_row((4,))
        assert (seen(mine, one), seen(mine, other)) == ([1, 2, 3], [4])
        assert mine.execute(f"SELECT count(*), max(k) FROM {one}").fetchone() == (3, 3)
        assert (seen(conn, one), seen(conn, other)) == ([], [])
        mine.commit()
        assert (seen(conn, one), seen(conn, other)) == ([1, 2, 3], [4])
        mine.execute(f"INSERT INTO {one} VALUES (5)")
        mine.rollback()
        assert seen(mine, one) == [1, 2, 3]
    assert seen(conn, one) == [1, 2, 3]


def test_changes_of_a_transaction_are_made_at_commit(conn, table):
    one, other = table("k bigint"), table("k bigint")
    for name in (one, other):
        conn.execute(f"INSERT INTO {name} VALUES (1), (2), (3)")
    with psycopg.connect() as mine:
        assert mine.execute(f"DELETE FROM {one} WHERE k < 3").rowcount == 2
        mine.rollback()
        assert seen(conn, one) == [1, 2, 3]
        assert mine.execute(f"DELETE FROM {one} WHERE k < 3").rowcount == 2
        mine.execute(f"INSERT INTO {one} VALUES (7)")
        assert mine.execute(f"UPDATE {other} SET k = k + 10").rowcount == 3
        assert (seen(conn, one), seen(conn, other)) == ([1, 2, 3], [1, 2, 3])
        mine.commit()
    assert (seen(conn, one), seen(conn, other)) == ([3, 7], [11, 12, 13])


def test_of_two_changes_the_first_to_commit_counts(conn, table):
    name = table("k bigint")
    conn.execute(f"INSERT INTO {name} VALUES (1)")
    with psycopg.connect() as mine:
        mine.execute(f"UPDATE {name} SET k = k + 1")
        conn.execute(f"UPDATE {name} SET k = k + 10")
        with pytest.raises(psycopg.errors.SerializationFailure):
            mine.commit()
        assert mine.info.transaction_status == STATUS.IDLE
        assert seen(mine, name) == [11]


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "made again"])
def test_a_table_that_is_gone_at_commit_fails_it(conn, table, again):
    name, other = table("k bigint"), table("k bigint")
    error = psycopg.errors.SerializationFailure if again else psycopg.errors.UndefinedTable
    with psycopg.connect() as mine:
        mine.execute(f"INSERT INTO {name} VALUES (1)")
        mine.execute(f"INSERT INTO {other} VALUES (1)")
        conn.execute(f"DROP TABLE {name}")
        if again:
            conn.execute(f"CREATE TABLE {name} (k bigint)")
        with pytest.raises(error):
            mine.commit()
    assert seen(conn, other) == []
    if again:
        assert seen(conn, name) == []


def test_nested_transactions_are_savepoints(conn, table):
    name = table("k bigint")
    with psycopg.connect(autocommit=True) as mine:
        with mine.transaction():
            mine.execute(f"INSERT INTO {name} VALUES (1)")
            with pytest.raises(psycopg.errors.UndefinedTable):
                with mine.transaction():
                    mine.execute(f"INSERT INTO {name} VALUES (2)")
                    mine.execute("SELECT * FROM nothing_of_this_name")
            assert mine.info.transaction_status == STATUS.INTRANS
            with mine.transaction() as inner:
                mine.execute(f"INSERT INTO {name} VALUES (4)")
                raise psycopg.Rollback(inner)
            with mine.transaction():
                mine.execute(f"INSERT INTO {name} VALUES (3)")
            assert seen(mine, name) == [1, 3]
        assert seen(conn, name) == [1, 3]


def test_after_an_error_nothing_is_committed(conn, table):
    name = table("k bigint NOT NULL")
    with psycopg.connect() as mine:
        for wrong, sqlstate in [
            (f"INSERT INTO {name} VALUES (NULL)", "23502"),
            (f"INSERT INTO {name} VALUES (1/0)", "22012"),
            ("SELECT nothing", "42703"),
        ]:
            mine.execute(f"INSERT INTO {name} VALUES (1)")
            refused(mine, wrong, sqlstate)
            assert mine.info.transaction_status == STATUS.INERROR
            refused(mine, "SELECT 1", "25P02")
            mine.rollback()
        mine.execute(f"INSERT INTO {name} VALUES (1)")
        refused(mine, "SELECT nothing", "42703")
        mine.commit()
        assert seen(mine, name) == []


def test_a_connection_that_ends_commits_nothing(conn, table):
    name = table("k bigint")
    conn.execute(f"INSERT INTO {name} VALUES (1)")
    for write in (f"INSERT INTO {name} VALUES (2)", f"DELETE FROM {name}"):
        mine = psycopg.connect()
        mine.execute(write)
        mine.close()
        assert seen(conn, name) == [1]


def test_read_only_connections_cannot_write(conn, table):
    name = table("k bigint")
    with psycopg.connect() as mine:
        mine.read_only = True
        for write in [f"INSERT INTO {name} VALUES (1)", f"DELETE FROM {name}", f"DROP TABLE {name}"]:
            assert seen(mine, name) == []
            refused(mine, write, "25006")
            assert mine.info.transaction_status == STATUS.INERROR
            refused(mine, "SELECT 1", "25P02")
            mine.rollback()
    with psycopg.connect(autocommit=True, options="-c default_transaction_read_only=on") as mine:
        refused(mine, f"INSERT INTO {name} VALUES (1)", "25006")
    assert seen(conn, name) == []


def test_isolation_levels(conn, table):
    name = table("k bigint")
    for level, after in [("READ_COMMITTED", [1]), ("REPEATABLE_READ", [])]:
        conn.execute(f"TRUNCATE TABLE {name}")
        with psycopg.connect() as mine:
            mine.isolation_level = psycopg.IsolationLevel[level]
            assert seen(mine, name) == []
            conn.execute(f"INSERT INTO {name} VALUES (1)")
            assert seen(mine, name) == after
            mine.commit()
            assert seen(mine, name) == [1]


def test_tables_made_in_a_transaction_stay_and_this_is_said(conn):
    name = f"t_{uuid.uuid4().hex[:12]}"
    notices = []
    with psycopg.connect() as mine:
        mine.add_notice_handler(lambda diag: notices.append(diag.severity))
        mine.execute(f"CREATE TABLE {name} (k bigint)")
        mine.execute(f"INSERT INTO {name} VALUES (1)")
        assert seen(mine, name) == [1]
        mine.rollback()
        assert notices == ["NOTICE", "WARNING"]
        assert seen(mine, name) == []
        mine.rollback()
        mine.execute(f"INSERT INTO {name} VALUES (1)")
        refused(mine, f"ALTER TABLE {name} ADD COLUMN c int", "0A000")
        mine.rollback()
        mine.execute(f"DROP TABLE {name}")
        mine.commit()
    with pytest.raises(psycopg.errors.UndefinedTable):
        seen(conn, name)


def test_what_transactions_cannot_do_is_refused(conn, table):
    name = table("k bigint")
    conn.execute(f"INSERT INTO {name} VALUES (1)")
    with psycopg.connect() as mine:
        for first, second in [
            (f"DELETE FROM {name} WHERE k = 1", f"SELECT * FROM {name}"),
            (f"DELETE FROM {name} WHERE k = 1", f"UPDATE {name} SET k = 2"),
            (f"INSERT INTO {name} VALUES (2)", f"UPDATE {name} SET k = 2"),
        ]:
            mine.execute(first)
            refused(mine, second, "0A000")
            mine.rollback()
        mine.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        refused(mine, "SELECT 1", "0A000")
    assert seen(conn, name) == [1]


# What two sessions, a and b, send in turn: statements on a table `m` of one column `k`.
SCRIPTS = {
    "commit": [
        ("a", "BEGIN"),
        ("a", "INSERT INTO m VALUES (1), (2)"),
        ("b", "SELECT k FROM m ORDER BY k"),
        ("a", "SELECT k FROM m ORDER BY k"),
        ("a", "COMMIT"),
        ("b", "SELECT k FROM m ORDER BY k"),
    ],
    "rollback": [
        ("a", "BEGIN"),
        ("a", "INSERT INTO m VALUES (1)"),
        ("b", "INSERT INTO m VALUES (2)"),
        ("a", "SELECT k FROM m ORDER BY k"),
        ("a", "ROLLBACK"),
        ("a", "SELECT k FROM m ORDER BY k"),
    ],
    "savepoints": [
        ("a", "BEGIN"),
        ("a", "INSERT INTO m VALUES (1)"),
        ("a", "SAVEPOINT x"),
        ("a", "INSERT INTO m VALUES (2)"),
        ("a", "SAVEPOINT x"),
        ("a", "INSERT INTO m VALUES (3)"),
        ("a", "ROLLBACK TO x"),
        ("a", "SELECT k FROM m ORDER BY k"),
        ("a", "RELEASE x"),
        ("a", "ROLLBACK TO SAVEPOINT x"),
        ("a", "SELECT k FROM m ORDER BY k"),
        ("a", "RELEASE SAVEPOINT x"),
        ("a", "ROLLBACK TO x"),
        ("a", "COMMIT"),
        ("b", "SELECT k FROM m ORDER BY k"),
    ],
    "an error and a savepoint": [
        ("a", "BEGIN"),
        ("a", "INSERT INTO m VALUES (1)"),
        ("a", 'SAVEPOINT "X"'),
        ("a", "INSERT INTO m SELECT 1 / 0"),
        ("a", "SELECT 1"),
        ("a", "SAVEPOINT y"),
        ("a", 'ROLLBACK TO "X"'),
        ("a", "COMMIT"),
        ("b", "SELECT k FROM m ORDER BY k"),
    ],
    "a commit after an error": [
        ("a", "BEGIN"),
        ("a", "INSERT INTO m VALUES (1)"),
        ("a", "SELECT * FROM nothing"),
        ("a", "COMMIT"),
        ("a", "SELECT k FROM m ORDER BY k"),
        ("a", "ROLLBACK"),
    ],
    "a change": [
        ("b", "INSERT INTO m VALUES (1), (2)"),
        ("a", "BEGIN"),
        ("a", "UPDATE m SET k = 7 WHERE k = 1"),
        ("b", "SELECT k FROM m ORDER BY k"),
        ("b", "INSERT INTO m VALUES (3)"),
        ("a", "INSERT INTO m VALUES (4)"),
        ("a", "COMMIT"),
        ("b", "SELECT k FROM m ORDER BY k"),
    ],
    "modes": [
        ("a", "BEGIN READ ONLY"),
        ("a", "SHOW transaction_read_only"),
        ("a", "INSERT INTO m VALUES (1)"),
        ("a", "ROLLBACK"),
        ("a", "SHOW transaction_read_only"),
        ("a", "SET default_transaction_read_only = on"),
        ("a", "INSERT INTO m VALUES (1)"),
        ("a", "BEGIN READ WRITE"),
        ("a", "INSERT INTO m VALUES (1)"),
        ("a", "COMMIT"),
        ("a", "BEGIN"),
        ("a", "SELECT k FROM m"),
        ("a", "SET TRANSACTION READ WRITE"),
        ("a", "ROLLBACK"),
        ("a", "BEGIN ISOLATION LEVEL REPEATABLE READ"),
        ("a", "SHOW transaction_isolation"),
        ("a", "SELECT k FROM m"),
        ("b", "INSERT INTO m VALUES (2)"),
        ("a", "SELECT k FROM m"),
        ("a", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
        ("a", "COMMIT"),
        ("a", "SELECT k FROM m ORDER BY k"),
        ("a", "SHOW transaction_isolation"),
    ],
}


def told(port, script):
    """What comes of each statement: its status and rows or its SQLSTATE, and the block's state."""
    options = {"host": "127.0.0.1", "port": port, "user": "stoa", "dbname": "stoa", "autocommit": True}
    answers = []
    with psycopg.connect(**options) as a, psycopg.connect(**options) as b:
        b.execute("CREATE TABLE m (k bigint)")
        try:
            for session, statement in script:
                connection = a if session == "a" else b
                try:
                    cursor = connection.execute(statement, prepare=False)
                    status = None if statement.startswith("SHOW") else cursor.statusmessage
                    answer = (status, cursor.fetchall() if cursor.description else None)
                except psycopg.Error as error:
                    answer = error.sqlstate
                answers.append((statement, answer, connection.info.transaction_status.name))
        finally:
            a.close()
            b.execute("DROP TABLE m")
    return answers


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_give_what_postgresql_gives(postgres, name):
    assert told(int(os.environ["PGPORT"]), SCRIPTS[name]) == told(postgres, SCRIPTS[name])


LOCKS = [
    # Who, what, and what it answers on a real PostgreSQL.
    ("one", "SELECT pg_try_advisory_lock(7), pg_try_advisory_lock(7), pg_try_advisory_lock(1, 7)"),
    ("other", "SELECT pg_try_advisory_lock(7), pg_try_advisory_lock_shared(7), pg_try_advisory_lock(2, 7)"),
    ("one", "SELECT pg_advisory_unlock(7)"),
    ("other", "SELECT pg_try_advisory_lock(7)"),
    ("one", "SELECT pg_advisory_unlock(7), pg_advisory_unlock(7)"),
    ("other", "SELECT pg_try_advisory_lock(7), pg_try_advisory_lock('8'), pg_try_advisory_lock(NULL)"),
    ("one", "SELECT pg_try_advisory_lock(8), pg_advisory_unlock_shared(8)"),
    ("other", "SELECT pg_advisory_unlock_all() IS NULL"),
    ("one", "SELECT pg_try_advisory_lock_shared(7)"),
    ("other", "SELECT pg_try_advisory_lock_shared(7), pg_try_advisory_lock(7)"),
    ("one", "BEGIN"),
    ("one", "SELECT pg_try_advisory_xact_lock(9), pg_try_advisory_xact_lock_shared(10)"),
    ("other", "SELECT pg_try_advisory_lock(9), pg_try_advisory_lock_shared(10), pg_try_advisory_lock(10)"),
    ("one", "SELECT pg_advisory_unlock(9)"),
    ("one", "ROLLBACK"),
    ("other", "SELECT pg_try_advisory_lock(9), pg_try_advisory_lock(10)"),
    ("one", "SELECT pg_try_advisory_xact_lock(9), pg_try_advisory_xact_lock(11)"),
    ("other", "SELECT pg_try_advisory_lock(11), pg_advisory_lock(11) IS NULL"),
    ("other", "DISCARD ALL"),
    ("one", "SELECT pg_try_advisory_lock(11), pg_try_advisory_lock(-9223372036854775808)"),
]


def locks_of(address):
    with psycopg.connect(address, autocommit=True) as one, psycopg.connect(address, autocommit=True) as other:
        for who, statement in LOCKS:
            cursor = (one if who == "one" else other).execute(statement)
            yield statement, cursor.fetchall() if cursor.description else cursor.statusmessage


def test_advisory_locks_are_those_of_a_real_postgresql(postgres):
    expected = list(locks_of(f"host=127.0.0.1 port={postgres} user=stoa dbname=stoa"))
    assert list(locks_of("")) == expected


def test_a_lock_of_another_session_is_an_error_until_that_ends(conn):
    with psycopg.connect(autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(77)")
        refused(conn, "SELECT pg_advisory_lock(77)", "55P03")
    wait_until(lambda: conn.execute("SELECT pg_try_advisory_lock(77)").fetchone() == (True,))
    conn.execute("SELECT pg_advisory_unlock(77)")


def wait_until(is_so):
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


LONG = "SELECT count(*) FROM generate_series(1, 3000000000) AS a(x) WHERE x % 7 = 8"


def test_sessions_are_cancelled_and_terminated_by_process_id(conn):
    assert conn.execute("SELECT pg_backend_pid()").fetchone() == (conn.info.backend_pid,)
    with psycopg.connect(autocommit=True) as other, concurrent.futures.ThreadPoolExecutor() as threads:
        pid = other.info.backend_pid
        active = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND query LIKE %s"
        runs = lambda: conn.execute(active, (pid, LONG[:40].replace("%", "_") + "%")).fetchone() == (1,)
        failed = threads.submit(refused, other, LONG, "57014")
        wait_until(runs)
        assert conn.execute("SELECT pg_cancel_backend(%s)", (pid,)).fetchone() == (True,)
        failed.result(30)
        assert other.execute("SELECT 1").fetchone() == (1,)
        failed = threads.submit(other.execute, LONG)
        wait_until(runs)
        assert conn.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone() == (True,)
        assert isinstance(failed.exception(30), psycopg.Error)
        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT 1")
        assert other.broken
    # It is gone, also for those who ask; one that waits for its client ends as well.
    gone = lambda: conn.execute("SELECT pg_cancel_backend(%s)", (pid,)).fetchone() == (False,)
    wait_until(gone)
    with psycopg.connect(autocommit=True) as idle:
        pid = idle.info.backend_pid
        assert conn.execute("SELECT pg_terminate_backend(%s, 100)", (pid,)).fetchone() == (True,)
        wait_until(gone)
        with pytest.raises(psycopg.OperationalError):
            idle.execute("SELECT 1")
