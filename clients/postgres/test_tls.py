"""Encrypted connections as psql, psycopg, JDBC, curl and the shell make them, with the certificates of docs/tls.md."""

import json
import os
import pathlib
import subprocess
import threading
import time
import urllib.parse

import psycopg
import pytest

from access_server import PASSWORD, SUPERUSER
from tls_server import AUTHORITY_AND_SERVER, make_certificates, start_encrypted

HERE = pathlib.Path(__file__).parent
ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(value) WHERE value % 7 = 8"
BOUND = {"sslmode": "verify-full", "channel_binding": "require"}


def connect(server, **more):
    options = {"host": "localhost", "port": server.pg_port, "user": SUPERUSER, "password": PASSWORD}
    return psycopg.connect(autocommit=True, **{**options, "sslrootcert": server.ca, **more})


def refused(server, **more):
    """What is said to a client that is not let in."""
    with pytest.raises(psycopg.OperationalError) as caught:
        connect(server, **more)
    return str(caught.value)


def psql(server, **options):
    """Runs psql with a statement; its status, and what it printed."""
    options = {"host": "localhost", "port": server.pg_port, "user": SUPERUSER, "dbname": "stoa", **options}
    done = subprocess.run(
        ["psql", "-X", "-w", "-A", "-t", "-c", "SELECT 7", " ".join(f"{k}='{v}'" for k, v in options.items())],
        env={**os.environ, "PGPASSWORD": PASSWORD},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout.strip()


def test_psql_verifies_the_server(encrypted):
    assert psql(encrypted, sslrootcert=encrypted.ca, **BOUND) == (0, "7")
    status, said = psql(encrypted, sslmode="verify-full", sslrootcert=encrypted.directory / "ann.crt")
    assert status != 0 and "certificate verify failed" in said
    status, said = psql(encrypted, sslmode="disable")
    assert status != 0 and "the connection is not encrypted" in said


def test_a_server_of_another_name_is_not_taken_for_this_one(encrypted):
    # A name that leads here and is not in the certificate.
    said = refused(encrypted, host="reports.invalid", hostaddr="127.0.0.1", **BOUND)
    assert 'does not match host name "reports.invalid"' in said


@pytest.mark.parametrize("negotiation", ["postgres", "direct"])
def test_psycopg_is_bound_to_the_server(encrypted, negotiation):
    with connect(encrypted, sslnegotiation=negotiation, **BOUND) as connection:
        assert connection.pgconn.ssl_in_use
        rows = connection.execute("SELECT value FROM generate_series(1, 100000) AS s(value)").fetchall()
        assert len(rows) == 100000
    said = refused(encrypted, sslnegotiation=negotiation, **{**BOUND, "password": "brush"})
    assert "password authentication failed" in said


def test_much_goes_in_and_out(encrypted):
    with connect(encrypted, **BOUND) as connection:
        connection.execute("CREATE TABLE much (n bigint, note text)")
        note = "x" * 1000
        with connection.cursor() as cursor, cursor.copy("COPY much FROM STDIN") as rows:
            for n in range(20000):
                rows.write_row((n, note))
        with connection.cursor() as cursor, cursor.copy("COPY much TO STDOUT") as copied:
            assert sum(1 for _ in copied.rows()) == 20000
        connection.execute("DROP TABLE much")


@pytest.mark.parametrize("way", ["cancel", "cancel_safe"])
def test_a_statement_is_cancelled(encrypted, way):
    """By a request that is not encrypted, as older clients send it, and by one that is."""
    with connect(encrypted, **BOUND) as connection, connect(encrypted, **BOUND) as other:
        ended = []

        def run():
            try:
                connection.execute(ENDLESS)
            except psycopg.errors.QueryCanceled as error:
                ended.append(error.sqlstate)

        thread = threading.Thread(target=run)
        thread.start()
        running = "SELECT count(*) FROM system.queries WHERE state = 'running' AND sql = %s"
        while other.execute(running, [ENDLESS]).fetchone() == (0,) and thread.is_alive():
            pass
        getattr(connection, way)()
        thread.join(60)
        assert ended == ["57014"]


def test_jdbc(encrypted):
    jar = pathlib.Path(os.environ["STOA_TOOLS"], "postgres", "postgresql.jar")
    url = f"jdbc:postgresql://localhost:{encrypted.pg_port}/stoa"
    other = str(encrypted.directory / "ann.crt")
    done = subprocess.run(
        ["java", "-cp", str(jar), str(HERE / "JdbcTls.java"), url, SUPERUSER, PASSWORD, encrypted.ca, other],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def curl(server, *more, scheme="https"):
    """How curl ends with a statement, and the body and the status on stdout."""
    return subprocess.run(
        ["curl", "-sS", "--max-time", "60", "-w", "\n%{http_code}", "-u", f"{SUPERUSER}:{PASSWORD}",
         "-H", "Content-Type: application/json", "-d", '{"sql": "SELECT 7 AS n"}', *more,
         f"{scheme}://localhost:{server.http_port}/v1/sql"],
        capture_output=True,
        text=True,
    )


def test_curl(encrypted):
    done = curl(encrypted, "--cacert", encrypted.ca)
    assert done.returncode == 0, done.stderr
    body, status = done.stdout.rsplit("\n", 1)
    assert (status, json.loads(body)["rows"]) == ("200", [[7]])
    # Without the authority: CURLE_PEER_FAILED_VERIFICATION.
    assert curl(encrypted).returncode == 60
    body, status = curl(encrypted, scheme="http").stdout.rsplit("\n", 1)
    assert status == "400" and "this port speaks HTTPS" in body


def test_the_shell(encrypted):
    def shell(*more):
        quoted = urllib.parse.quote(PASSWORD, safe="")
        url = f"https://{SUPERUSER}:{quoted}@localhost:{encrypted.http_port}"
        command = [encrypted.stoa, "sql", "--url", url, *more, "--format", "csv", "--no-header", "-c", "SELECT 7"]
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    done = shell("--tls-ca", encrypted.ca)
    assert done.stdout.strip() == "7", done.stderr
    assert "--tls-ca" in shell().stderr


@pytest.fixture
def own(tmp_path):
    """A server whose files a test may change."""
    server = start_encrypted(tmp_path)
    yield server
    server.stop()


def until(what, fact):
    end = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < end, f"waited too long: {what}"


def test_a_new_certificate_is_used_and_a_broken_one_is_not(own):
    directory, kept = own.directory, "the old ones stay in use"
    log = directory / "server.log"
    before = (directory / "ca.crt").read_text()
    with connect(own, **BOUND) as connection:
        make_certificates(directory, AUTHORITY_AND_SERVER)
        assert (directory / "ca.crt").read_text() != before

        def is_new():
            try:
                connect(own, **BOUND).close()
                return True
            except psycopg.OperationalError:
                return False

        until("the new certificate", is_new)
        assert "new TLS certificate in use" in log.read_text()
        # Open connections go on.
        assert connection.execute("SELECT 7").fetchone() == (7,)
    told = log.read_text().count(kept)
    (directory / "stoa.key").write_text("damaged\n")
    until("the error", lambda: log.read_text().count(kept) > told)
    connect(own, **BOUND).close()


def test_clients_need_certificates_where_the_server_asks_for_them(tmp_path):
    server = start_encrypted(tmp_path, "--tls-client-ca", str(tmp_path / "ca.crt"))
    own = {"sslcert": str(tmp_path / "ann.crt"), "sslkey": str(tmp_path / "ann.key")}
    with connect(server, **BOUND, **own) as connection:
        assert connection.execute("SELECT 7").fetchone() == (7,)
    assert psql(server, sslrootcert=server.ca, **BOUND, **own) == (0, "7")
    said = refused(server, **BOUND, sslcert="none")
    assert "certificate required" in said, said
    done = curl(server, "--cacert", server.ca, "--cert", own["sslcert"], "--key", own["sslkey"])
    assert done.returncode == 0, done.stderr
    assert curl(server, "--cacert", server.ca).returncode != 0
    server.stop()
