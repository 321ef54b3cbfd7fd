"""Two daemons that are one server, for clients who know nothing of that: behind a balancer, and with several hosts.

The balancer hands each connection to the next daemon, as a plain TCP balancer does: a request to cancel, which is a
connection of its own, reaches the other daemon.
"""

import itertools
import multiprocessing
import os
import pathlib
import socket
import subprocess
import threading
import time

import psycopg
import pytest
import real_postgres
from daemons import LIMIT, PASSWORD, cluster

HERE = pathlib.Path(__file__).parent


class Balancer:
    """A TCP port whose nth connection goes to the nth daemon, round and round. A process of its own, since libpq's way
    to cancel lets no other thread of Python run."""

    def __init__(self, ports):
        self.turn = itertools.cycle(ports)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.process = multiprocessing.get_context("fork").Process(target=self.accept, daemon=True)
        self.process.start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", next(self.turn)))
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    @staticmethod
    def pass_on(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.process.kill()
        self.process.join()
        self.listener.close()


@pytest.fixture(scope="module")
def daemons(tmp_path_factory):
    if real_postgres.programs() is None:
        pytest.skip("no PostgreSQL server is installed (package postgresql)")
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as daemons:
        yield daemons


@pytest.fixture
def balancer(daemons):
    balancer = Balancer([daemon.port for daemon in daemons])
    yield balancer
    balancer.close()


def connect(port, user="boss", **more):
    return psycopg.connect(
        host="127.0.0.1", port=port, user=user, password=PASSWORD, dbname="stoa", autocommit=True, **more
    )


def until(what, is_so):
    until_when = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < until_when, f"in vain: {what}"


def running(connection, text):
    sql = "SELECT id FROM system.queries WHERE state = 'running' AND sql = %s"
    return [row[0] for row in connection.execute(sql, [text], prepare=False)]


@pytest.mark.parametrize("how", ["cancel", "cancel_safe", "pg_cancel_backend", "pg_terminate_backend", "KILL"])
def test_what_a_client_runs_ends_through_the_balancer(daemons, balancer, how):
    watchers = [connect(daemon.port) for daemon in daemons]
    sleep = f"SELECT pg_sleep(300) /* {how} */"
    # A third connection, such as one to cancel, would reach the client's own daemon; a fourth one the other.
    with connect(balancer.port) as client, connect(balancer.port) as other, connect(balancer.port):
        failed = []

        def run():
            try:
                client.execute(sleep)
            except psycopg.Error as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        until("it runs", lambda: any(running(watcher, sleep) for watcher in watchers))
        (id,) = [id for watcher in watchers for id in running(watcher, sleep)]
        pid = client.info.backend_pid
        assert other.info.backend_pid != pid
        if how == "cancel":
            client.cancel()
        elif how == "cancel_safe":
            client.cancel_safe(timeout=LIMIT)
        elif how == "KILL":
            other.execute(f"KILL QUERY {id}")
        else:
            assert other.execute(f"SELECT {how}(%s)", [pid]).fetchone() == (True,)
        thread.join(LIMIT)
        assert not thread.is_alive(), "nobody ended it"
        (error,) = failed
        assert error.sqlstate == "57014"
        if how == "pg_terminate_backend":
            with pytest.raises(psycopg.OperationalError):
                client.execute("SELECT 1")
        else:
            assert client.execute("SELECT 1").fetchone() == (1,), "the session goes on"
    for watcher in watchers:
        watcher.close()


def test_a_wrong_secret_cancels_nothing(daemons):
    one, two = daemons
    with connect(one.port) as client:
        thread = threading.Thread(target=lambda: client.execute("SELECT pg_sleep(1.5)"))
        thread.start()
        for port in (one.port, two.port):
            with socket.create_connection(("127.0.0.1", port)) as wire:
                pid = client.info.backend_pid
                body = (16).to_bytes(4) + (80877102).to_bytes(4) + pid.to_bytes(4) + (12345).to_bytes(4)
                wire.sendall(body)
                assert wire.recv(1) == b"", "a request to cancel is never answered"
        thread.join(LIMIT)
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_others_statements_are_ended_by_superusers_only(daemons):
    one, two = daemons
    with connect(one.port) as boss, connect(two.port) as other_boss:
        boss.execute(f"CREATE ROLE clerk LOGIN PASSWORD '{PASSWORD}'")
        sleep = "SELECT pg_sleep(300) /* of the boss */"
        ended = []

        def run():
            try:
                boss.execute(sleep)
            except psycopg.Error as error:
                ended.append(error.sqlstate)

        # Roles are there everywhere with the next statement.
        with connect(two.port, "clerk") as clerk, connect(one.port) as watcher:
            thread = threading.Thread(target=run)
            thread.start()
            until("it runs", lambda: running(watcher, sleep))
            (id,) = running(watcher, sleep)
            pid = boss.info.backend_pid
            for statement in (f"KILL QUERY {id}", f"SELECT pg_terminate_backend({pid})"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    clerk.execute(statement)
            assert running(watcher, sleep) == [id]
            other_boss.execute(f"KILL QUERY {id}")
            thread.join(LIMIT)
            assert ended == ["57014"]
            watcher.execute("DROP ROLE clerk")


def test_rights_hold_everywhere_with_the_next_statement(daemons):
    one, two = daemons
    with connect(one.port) as boss:
        boss.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
        boss.execute("CREATE TABLE pay (person text, euros int)")
        boss.execute("INSERT INTO pay VALUES ('a', 1)")
        with connect(two.port, "reader") as reader:
            for _ in range(3):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    reader.execute("SELECT person FROM pay")
                boss.execute("GRANT SELECT (person) ON pay TO reader")
                assert reader.execute("SELECT person FROM pay").fetchall() == [("a",)]
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    reader.execute("SELECT euros FROM pay")
                boss.execute("REVOKE SELECT (person) ON pay FROM reader")
        boss.execute("DROP TABLE pay")
        boss.execute("DROP ROLE reader")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize("target, connects", [("any", True), ("read-write", True), ("primary", True),
                                              ("prefer-standby", True), ("read-only", False), ("standby", False)])
def test_psql_takes_the_first_host_that_answers(daemons, target, connects):
    nobody = free_port()
    hosts = f"host=127.0.0.1,127.0.0.1,127.0.0.1 port={nobody},{daemons[0].port},{daemons[1].port}"
    where = f"{hosts} dbname=stoa user=boss password={PASSWORD} connect_timeout=10 target_session_attrs={target}"
    done = subprocess.run(["psql", where, "-Atc", "SELECT 40 + 2"], capture_output=True, text=True, timeout=LIMIT)
    if connects:
        assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    else:
        assert done.returncode == 2 and "session is not read-only" in done.stderr or "not in hot standby" in done.stderr


def test_jdbc_takes_the_first_host_that_answers(daemons):
    driver = pathlib.Path(os.environ["STOA_TOOLS"], "postgres", "postgresql.jar")
    hosts = f"127.0.0.1:{free_port()},127.0.0.1:{daemons[0].port},127.0.0.1:{daemons[1].port}"
    command = ["java", "-cp", str(driver), str(HERE / "JdbcHosts.java"), hosts, PASSWORD]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["any:42", "primary:42", "master:42", "preferSecondary:42", "preferPrimary:42",
                                   "secondary:08001"]
