"""Access control as ADBC, pyarrow and JDBC meet it: logging in, tokens, tickets, what was granted."""

import os
import pathlib
import subprocess

import adbc_driver_manager
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from adbc_driver_manager import AdbcStatusCode

from access_server import PASSWORD, SUPERUSER
from conftest import connect


def refused(run, status=AdbcStatusCode.UNAUTHORIZED, state="42501"):
    """The text of the error of what must not be answered."""
    with pytest.raises(adbc_driver_manager.Error) as caught:
        run()
    assert caught.value.status_code == status, caught.value
    assert f"SQLSTATE: {state}" in str(caught.value)
    return str(caught.value)


def answer(cursor, sql, *parameters):
    cursor.execute(sql, *parameters)
    return cursor.fetchall()


def test_the_right_password_logs_in(log_in, role):
    assert answer(log_in(role(), "pencil"), "SELECT 1") == [(1,)]
    assert answer(log_in(SUPERUSER, PASSWORD), "SELECT 2") == [(2,)]


def test_no_other_password_does(guarded, log_in, role):
    ann = role()
    for name, password in [(ann, "brush"), (ann, ""), ("nobody", "pencil")]:
        said = refused(
            lambda: answer(log_in(name, password), "SELECT 1"), AdbcStatusCode.UNAUTHENTICATED, "28P01"
        )
        assert f'password authentication failed for user "{name}"' in said

    def nobody():
        uri = f"grpc://127.0.0.1:{guarded.flight_port}"
        with connect(uri) as connection, connection.cursor() as cursor:
            answer(cursor, "SELECT 1")

    said = refused(nobody, AdbcStatusCode.UNAUTHENTICATED, "28000")
    assert "connect with user and password" in said


def test_columns_that_were_granted_and_that_were_not(admin, log_in, role, visits):
    ann = role()
    hers = log_in(ann, "pencil")
    said = refused(lambda: answer(hers, f"SELECT count(*) FROM {visits}"))
    assert f"permission denied for table public.{visits}" in said
    admin.execute(f"GRANT SELECT (account) ON {visits} TO {ann}")
    report = f"SELECT account FROM {visits} WHERE account > ? ORDER BY account"
    assert answer(hers, report, (1,)) == answer(admin, report, (1,)) == [(2,), (3,)]
    said = refused(lambda: answer(hers, f"SELECT cost FROM {visits}"))
    assert f"permission denied for column cost of table public.{visits}" in said
    assert "HINT: its owner or a superuser can GRANT" in said


def test_a_prepared_query_is_asked_again(admin, log_in, role, visits):
    ann = role()
    admin.execute(f"GRANT SELECT ON {visits} TO {ann}")
    hers = log_in(ann, "pencil")
    report = f"SELECT cost FROM {visits} WHERE account = ?"
    hers.adbc_prepare(report)
    for number in (1, 2):
        assert len(answer(hers, report, (number,))) == 1
    admin.execute(f"REVOKE SELECT ON {visits} FROM {ann}")
    refused(lambda: answer(hers, report, (1,)))
    admin.execute(f"GRANT SELECT ON {visits} TO {ann}")
    assert len(answer(hers, report, (1,))) == 1


def test_ingest_needs_what_its_mode_does(admin, log_in, role, visits):
    ann = role()
    hers = log_in(ann, "pencil")
    rows = pa.table({"account": [4], "cost": pa.array([None], pa.decimal128(9, 2))})
    append = lambda: hers.adbc_ingest(visits, rows, mode="append")
    refused(append)
    admin.execute(f"GRANT INSERT ON {visits} TO {ann}")
    append()
    assert answer(admin, f"SELECT count(*) FROM {visits}") == [(4,)]
    refused(lambda: hers.adbc_ingest(f"{visits}_new", rows, mode="create"))
    refused(lambda: hers.adbc_ingest(f"{visits}_new", rows, mode="create_append"))
    refused(lambda: hers.adbc_ingest(visits, rows, mode="replace"))
    admin.execute(f"ALTER TABLE {visits} OWNER TO {ann}")
    hers.adbc_ingest(visits, rows, mode="replace")
    assert answer(admin, f"SELECT count(*) FROM {visits}") == [(1,)]
    admin.execute(f"ALTER TABLE {visits} OWNER TO {SUPERUSER}")


@pytest.fixture
def client(guarded):
    with flight.connect(f"grpc+tcp://127.0.0.1:{guarded.flight_port}") as client:
        yield client


def with_token(client, role, password):
    """Options of calls that carry the token of a handshake."""
    return flight.FlightCallOptions(headers=[client.authenticate_basic_token(role, password)])


def test_a_token_is_its_roles(admin, client, role, visits):
    ann, path = role(), flight.FlightDescriptor.for_path("public", visits)
    with pytest.raises(flight.FlightUnauthenticatedError, match="28P01"):
        client.authenticate_basic_token(ann, "brush")
    for wrong in ([], [(b"authorization", b"Bearer 00")]):
        with pytest.raises(flight.FlightUnauthenticatedError, match="28000"):
            client.get_flight_info(path, flight.FlightCallOptions(headers=wrong))
    hers = with_token(client, ann, "pencil")
    fetch = lambda: client.do_get(client.get_flight_info(path, hers).endpoints[0].ticket, hers).read_all()
    with pytest.raises(flight.FlightUnauthorizedError, match="42501"):
        fetch()
    # What everybody may, a role may as long as it is there.
    admin.execute(f"GRANT SELECT ON {visits} TO PUBLIC")
    assert fetch().num_rows == 3
    admin.execute(f"DROP ROLE {ann}")
    with pytest.raises(flight.FlightUnauthorizedError, match="42501"):
        fetch()


def test_a_ticket_is_of_who_planned_the_query(admin, client, role, visits):
    admin.execute(f"GRANT SELECT ON {visits} TO PUBLIC")
    path = flight.FlightDescriptor.for_path("public", visits)
    hers, his = (with_token(client, role(), "pencil") for _ in range(2))
    endpoints = client.get_flight_info(path, hers).endpoints
    tickets = [endpoint.ticket for endpoint in endpoints]
    for ticket in tickets:
        for options in (his, with_token(client, SUPERUSER, PASSWORD)):
            with pytest.raises(KeyError, match="ticket"):
                client.do_get(ticket, options).read_all()
        with pytest.raises(flight.FlightUnauthenticatedError):
            client.do_get(ticket).read_all()
    # Whoever tried in vain did not use them up.
    assert sum(client.do_get(ticket, hers).read_all().num_rows for ticket in tickets) == 3


def test_rights_are_asked_when_a_ticket_is_redeemed(admin, client, role, visits):
    ann = role()
    admin.execute(f"GRANT SELECT ON {visits} TO {ann}")
    hers = with_token(client, ann, "pencil")
    path = flight.FlightDescriptor.for_path("public", visits)
    ticket = client.get_flight_info(path, hers).endpoints[0].ticket
    admin.execute(f"REVOKE SELECT ON {visits} FROM {ann}")
    with pytest.raises(flight.FlightUnauthorizedError, match="42501"):
        client.do_get(ticket, hers).read_all()


def test_batches_that_are_put_need_insert(admin, client, role, visits):
    ann = role()
    hers = with_token(client, ann, "pencil")
    batch = pa.record_batch({"account": [9], "cost": pa.array([None], pa.decimal128(9, 2))})

    def put():
        path = flight.FlightDescriptor.for_path("public", visits)
        writer, answers = client.do_put(path, batch.schema, hers)
        with writer:
            writer.write_batch(batch)
            return answers.read().to_pybytes()

    with pytest.raises(flight.FlightUnauthorizedError, match="42501"):
        put()
    admin.execute(f"GRANT INSERT ON {visits} TO {ann}")
    assert put() == b'{"rows": 1}'


def test_jdbc(guarded, role, visits):
    here = pathlib.Path(__file__).parent
    jar = pathlib.Path(os.environ["STOA_TOOLS"], "flight", "flight-sql-jdbc.jar")
    url = f"jdbc:arrow-flight-sql://127.0.0.1:{guarded.flight_port}"
    done = subprocess.run(
        ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", str(jar),
         str(here / "FlightJdbcAccess.java"), url, SUPERUSER, PASSWORD, role(), "pencil", visits],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
