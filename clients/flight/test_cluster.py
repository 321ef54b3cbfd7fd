"""Tickets and prepared statements at another daemon than the one that gave them, as a balancer hands them out.

pyarrow's client is given a connection to each daemon; what Flight SQL's messages have inside is written here byte by
byte, so that handles can be altered.
"""

import threading
import time

import pyarrow as pa
import pyarrow.flight as flight
import pytest
import real_postgres
from daemons import LIMIT, PASSWORD, SUPERUSER, cluster

from conftest import connect

SQL = "type.googleapis.com/arrow.flight.protocol.sql."


def field(number, data):
    """A field of bytes or text of a Protocol Buffers message."""
    data = data.encode() if isinstance(data, str) else bytes(data)
    length, size = len(data), b""
    while length > 0x7F:
        size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + data


def message(name, *fields):
    return field(1, SQL + name) + field(2, b"".join(fields))


def first_field(data):
    """The bytes of a message's first field, whose tag is one byte."""
    length = shift = 0
    for at, byte in enumerate(data[1:], 1):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return data[at + 1 : at + 1 + length]


def handle_in(any_message):
    """The handle in a packed message, whatever its type."""
    value = any_message[len(field(1, first_field(any_message))) :]
    return first_field(first_field(value))


class Client:
    """A role's connection to one daemon."""

    def __init__(self, daemon, user=SUPERUSER, password=PASSWORD, token=None):
        self.flight = flight.connect(f"grpc+tcp://127.0.0.1:{daemon.flight_port}")
        self.token = token or self.flight.authenticate_basic_token(user, password)
        self.options = flight.FlightCallOptions(headers=[self.token], timeout=LIMIT)

    def info(self, command):
        return self.flight.get_flight_info(flight.FlightDescriptor.for_command(command), self.options)

    def ticket(self, sql):
        (endpoint,) = self.info(message("CommandStatementQuery", field(1, sql))).endpoints
        return endpoint.ticket

    def fetch(self, ticket):
        return self.flight.do_get(ticket, self.options).read_all()

    def rows(self, ticket):
        return [tuple(row.values()) for row in self.fetch(ticket).to_pylist()]

    def run(self, sql):
        return [row for endpoint in self.info(message("CommandStatementQuery", field(1, sql))).endpoints
                for row in self.rows(endpoint.ticket)]

    def act(self, name, body):
        return [result.body.to_pybytes() for result in self.flight.do_action((name, body), self.options)]

    def prepare(self, sql):
        request = message("ActionCreatePreparedStatementRequest", field(1, sql))
        return handle_in(self.act("CreatePreparedStatement", request)[0])

    def close(self, handle):
        self.act("ClosePreparedStatement", message("ActionClosePreparedStatementRequest", field(1, handle)))

    def put(self, command, handle, table):
        descriptor = flight.FlightDescriptor.for_command(message(command, field(1, handle)))
        writer, answers = self.flight.do_put(descriptor, table.schema, self.options)
        with writer:
            writer.write_table(table)
            writer.done_writing()
            return answers.read().to_pybytes()

    def bind(self, handle, **values):
        self.put("CommandPreparedStatementQuery", handle, pa.table(values))

    def execute(self, handle):
        (endpoint,) = self.info(message("CommandPreparedStatementQuery", field(1, handle))).endpoints
        return self.rows(endpoint.ticket)

    def cancel(self, command):
        """Cancels the query of a FlightInfo; 1 for cancelled, 2 for cancelling."""
        (answer,) = self.act("CancelFlightInfo", field(1, command.serialize()))
        return answer[1]


def ticket_of(handle):
    return flight.Ticket(message("TicketStatementQuery", field(1, handle)))


@pytest.fixture(scope="module")
def daemons(tmp_path_factory):
    if real_postgres.programs() is None:
        pytest.skip("no PostgreSQL server is installed (package postgresql)")
    with cluster(tmp_path_factory.mktemp("cluster"), 3) as daemons:
        yield daemons


@pytest.fixture
def clients(daemons):
    clients = [Client(daemon) for daemon in daemons]
    yield clients
    for client in clients:
        client.flight.close()


@pytest.fixture
def table(clients, request):
    name = f"t_{abs(hash(request.node.name))}"
    clients[0].run(f"CREATE TABLE {name} (account bigint, cost decimal(9, 2))")
    clients[0].run(f"INSERT INTO {name} VALUES (1, 1.25), (2, 2.25), (3, 3.25)")
    yield name
    clients[0].run(f"DROP TABLE IF EXISTS {name}")


def refused(run, error=KeyError, state="26000"):
    with pytest.raises(error) as caught:
        run()
    assert f"SQLSTATE: {state}" in str(caught.value)
    return str(caught.value)


def test_a_ticket_is_redeemed_once_and_anywhere(clients, table):
    one, two, three = clients
    for giver, taker in [(one, two), (two, one), (three, two)]:
        ticket = giver.ticket(f"SELECT account, cost::text FROM {table} ORDER BY account")
        assert taker.rows(ticket) == [(1, "1.25"), (2, "2.25"), (3, "3.25")]
        for client in clients:
            refused(lambda: client.fetch(ticket))


def test_a_statement_that_changes_rows_runs_once(clients, table):
    one, two, three = clients
    ticket = one.ticket(f"INSERT INTO {table} VALUES (4, 4.25) RETURNING account")
    outcomes = []

    def redeem(client):
        try:
            outcomes.append(client.rows(ticket))
        except KeyError:
            outcomes.append(None)

    threads = [threading.Thread(target=redeem, args=[client]) for client in clients * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert sorted(outcomes, key=str) == [None] * 8 + [[(4,)]]
    assert two.run(f"SELECT count(*) FROM {table}") == [(4,)]


def test_settings_of_the_session_go_along(clients):
    one, two, _ = clients
    sql = "SELECT current_setting('TimeZone'), to_char(TIMESTAMPTZ '2026-01-01 00:00+00', 'HH24:MI')"
    for zone, time_there in [("Asia/Tokyo", "09:00"), ("+02:30", "21:30"), ("UTC", "00:00")]:
        one.run(f"SET TimeZone = '{zone}'")
        expected = one.run(sql)
        assert expected[0][1] == time_there
        assert two.rows(one.ticket(sql)) == expected
    # Its own session has what it had.
    two.run("SET TimeZone = 'America/New_York'")
    assert two.rows(one.ticket(sql)) == one.run(sql)
    one.run("CREATE SCHEMA IF NOT EXISTS \"My, own\"")
    one.run("CREATE TABLE IF NOT EXISTS \"My, own\".here (n int)")
    one.run("SET search_path = \"My, own\"")
    assert two.rows(one.ticket("SELECT count(*), current_schema() FROM here")) == [(0, "My, own")]
    one.run("RESET search_path")
    one.run("RESET TimeZone")


def test_another_roles_ticket_is_unknown_everywhere(daemons, clients, table):
    one, two, three = clients
    one.run(f"GRANT SELECT ON {table} TO PUBLIC")
    for role in ("ann", "ben"):
        one.run(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    ann, anns_other = Client(daemons[0], "ann"), Client(daemons[1], "ann")
    bens = [Client(daemon, "ben") for daemon in daemons]
    ticket = ann.ticket(f"SELECT account FROM {table}")
    handle = ann.prepare(f"SELECT account FROM {table} WHERE account > ?")
    for other in bens + clients:
        refused(lambda: other.fetch(ticket))
        refused(lambda: other.execute(handle))
        refused(lambda: other.bind(handle, a=[1]))
        other.close(handle)
    with pytest.raises(flight.FlightUnauthenticatedError):
        two.flight.do_get(ticket).read_all()
    # Nobody has used it up, or closed it.
    assert len(anns_other.rows(ticket)) == 3
    anns_other.bind(handle, a=[2])
    assert ann.execute(handle) == [(3,)]
    # A role that is gone has no tickets either.
    ticket = ann.ticket(f"SELECT account FROM {table}")
    one.run(f"REVOKE SELECT ON {table} FROM PUBLIC")
    one.run("DROP ROLE ann")
    with pytest.raises((flight.FlightUnauthorizedError, flight.FlightUnauthenticatedError)):
        anns_other.fetch(ticket)
    one.run("DROP ROLE ben")


def test_rights_are_asked_where_the_ticket_is_redeemed(daemons, clients, table):
    one = clients[0]
    one.run(f"CREATE ROLE eve LOGIN PASSWORD '{PASSWORD}'")
    one.run(f"GRANT SELECT ON {table} TO eve")
    eve, elsewhere = Client(daemons[0], "eve"), Client(daemons[1], "eve")
    ticket, handle = eve.ticket(f"SELECT * FROM {table}"), eve.prepare(f"SELECT * FROM {table}")
    assert len(elsewhere.execute(handle)) == 3
    one.run(f"REVOKE SELECT ON {table} FROM eve")
    refused(lambda: elsewhere.fetch(ticket), flight.FlightUnauthorizedError, "42501")
    refused(lambda: elsewhere.execute(handle), flight.FlightUnauthorizedError, "42501")
    one.run(f"GRANT SELECT (account) ON {table} TO eve")
    ticket = eve.ticket(f"SELECT account FROM {table} ORDER BY account")
    assert elsewhere.rows(ticket) == [(1,), (2,), (3,)]
    one.run(f"REVOKE SELECT (account) ON {table} FROM eve")
    one.run("DROP ROLE eve")


def test_altered_tickets_are_unknown(clients):
    one, two, _ = clients
    ticket = one.ticket("SELECT 42")
    handle = handle_in(ticket.ticket)
    assert len(handle) == 20
    altered = [handle[:at] + bytes([handle[at] ^ 1 << bit]) + handle[at + 1 :] for at in range(20) for bit in (0, 7)]
    altered += [handle[:-1], handle + b"\0", b"", b"\0" * 20, b"\xff" * 20, handle[4:]]
    for client in (one, two):
        for wrong in altered:
            refused(lambda: client.fetch(ticket_of(wrong)))
            refused(lambda: client.execute(wrong))
    assert two.rows(ticket_of(handle)) == [(42,)]


def test_what_was_not_fetched_for_too_long_is_unknown_everywhere(clients):
    one, two, _ = clients
    ticket, handle = one.ticket("SELECT 1"), one.prepare("SELECT 1")
    # More than a server keeps: what was not used for longest goes.
    for number in range(1001):
        one.ticket(f"SELECT {number}")
    refused(lambda: two.fetch(ticket))
    assert two.execute(handle) == [(1,)]


def test_a_statement_is_prepared_here_bound_there_and_run_elsewhere(clients, table):
    one, two, three = clients
    handle = one.prepare(f"SELECT account * 10 AS n FROM {table} WHERE account >= ? AND cost < ? ORDER BY n")
    refused(lambda: two.bind(handle, a=[1]), pa.ArrowInvalid, "08P01")
    for least, expected in [(1, [(10,), (20,)]), (2, [(20,)])]:
        two.bind(handle, a=[least], b=pa.array([3], pa.decimal128(9, 2)))
        for client in (three, one, two):
            assert client.execute(handle) == expected
    # A run for each row.
    three.bind(handle, a=[2, 3], b=[9.0, 9.0])
    assert two.execute(handle) == [(20,), (30,), (30,)]
    three.close(handle)
    for client in clients:
        refused(lambda: client.execute(handle))


def test_an_update_runs_on_the_daemon_that_is_asked(clients, table):
    one, two, three = clients
    handle = one.prepare(f"INSERT INTO {table} VALUES (?, ?)")
    rows = pa.table({"a": list(range(10, 15)), "b": pa.array([1] * 5, pa.decimal128(9, 2))})
    assert two.put("CommandPreparedStatementUpdate", handle, rows)[-1] == 5
    assert three.run(f"SELECT count(*), sum(account) FROM {table}") == [(8, 66)]


def test_columns_that_changed_are_not_given_for_those_announced(clients, table):
    one, two, _ = clients
    ticket = one.ticket(f"SELECT * FROM {table}")
    one.run(f"ALTER TABLE {table} ADD COLUMN more text")
    said = refused(lambda: two.fetch(ticket), NotImplementedError, "0A000")
    assert "no longer those that were announced" in said


def test_a_temporary_table_is_not_taken_for_another_one(clients, table):
    one, two, _ = clients
    one.run(f"CREATE TEMP TABLE {table} (account bigint)")
    ticket, handle = one.ticket(f"SELECT account FROM {table}"), one.prepare(f"SELECT account FROM {table}")
    for run in (lambda: two.fetch(ticket), lambda: two.execute(handle)):
        said = refused(run, NotImplementedError, "0A000")
        assert "temporary tables" in said and "HINT" in said
    assert one.rows(ticket) == one.execute(handle) == []
    one.run(f"DROP TABLE pg_temp.{table}")


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_query_that_moved_is_cancelled_from_anywhere(daemons, clients, where):
    one, two, _ = clients
    sql = f"SELECT pg_sleep(300), {where}"
    info = one.info(message("CommandStatementQuery", field(1, sql)))
    failed = []

    # With ADBC: pyarrow takes a cancelled call for Ctrl-C.
    def run():
        log_in = {"username": SUPERUSER, "password": PASSWORD}
        with connect(f"grpc://127.0.0.1:{daemons[1].flight_port}", db_kwargs=log_in) as there:
            with there.cursor() as cursor:
                try:
                    cursor.adbc_read_partition(info.serialize())
                    cursor.fetchall()
                except Exception as error:
                    failed.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    until = time.monotonic() + LIMIT
    while not two.run(f"SELECT 1 FROM system.queries WHERE state = 'running' AND sql = '{sql}'"):
        assert time.monotonic() < until
    assert clients[where].cancel(info) == 2
    thread.join(LIMIT)
    assert "57014" in failed[0]


def test_a_query_that_did_not_run_is_cancelled_from_anywhere(clients):
    one, two, three = clients
    info = one.info(message("CommandStatementQuery", field(1, "SELECT 5")))
    assert two.cancel(info) == 1
    for client in clients:
        refused(lambda: client.fetch(info.endpoints[0].ticket))
    refused(lambda: three.cancel(info))


def test_a_token_is_good_on_every_daemon(daemons, clients, table):
    clients[0].run("CREATE USER visitor PASSWORD 'pencil'")
    visitor = Client(daemons[0], "visitor", "pencil")
    visitor.run("SET timezone = 'Asia/Tokyo'")
    everywhere = [Client(daemon, token=visitor.token) for daemon in daemons]
    for client in everywhere:
        assert client.run("SELECT current_user, current_setting('timezone')") == [("visitor", "Asia/Tokyo")]
        with pytest.raises(flight.FlightUnauthorizedError):
            client.run(f"SELECT * FROM {table}")
    # Each has a session of its own from there on.
    everywhere[1].run("SET timezone = 'UTC'")
    assert [client.run("SHOW timezone") for client in everywhere] == [[("Asia/Tokyo",)], [("UTC",)], [("Asia/Tokyo",)]]
    everywhere[2].act("CloseSession", b"")
    for client in everywhere:
        refused(lambda: client.run("SELECT 1"), flight.FlightUnauthenticatedError, "28000")
        client.flight.close()
    visitor.flight.close()
    clients[0].run("DROP USER visitor")


def test_altered_tokens_are_unknown(daemons, clients):
    name, token = clients[0].token
    digits = token.split(b" ")[1].decode()
    others = [f"{number:08x}{digits[8:]}" for number in (0, 1, 2, 3, 2**32 - 1) if number != int(digits[:8], 16)]
    for altered in [*others, digits[:-1] + ("0" if digits[-1] != "0" else "1"), digits[:-1], digits + "0", "x" * len(digits), ""]:
        for daemon in daemons:
            client = Client(daemon, token=(name, b"Bearer " + altered.encode()))
            refused(lambda: client.run("SELECT 1"), flight.FlightUnauthenticatedError, "28000")
            client.flight.close()


def test_a_token_of_a_session_with_temporary_tables_stays_where_it_is(daemons, clients):
    clients[0].run("CREATE TEMPORARY TABLE of_here (n int)")
    there = Client(daemons[1], token=clients[0].token)
    refused(lambda: there.run("SELECT 1"), NotImplementedError, "0A000")
    there.flight.close()
    assert clients[0].run("SELECT count(*) FROM of_here") == [(0,)]


def test_adbc_reads_a_partition_of_another_daemon(daemons, table):
    log_in = {"username": SUPERUSER, "password": PASSWORD}
    uris = [f"grpc://127.0.0.1:{daemon.flight_port}" for daemon in daemons]
    with connect(uris[0], db_kwargs=log_in) as here, connect(uris[1], db_kwargs=log_in) as there:
        with here.cursor() as one, there.cursor() as two:
            partitions, schema = one.adbc_execute_partitions(f"SELECT account, cost FROM {table} ORDER BY account")
            assert schema.names == ["account", "cost"]
            two.adbc_read_partition(partitions[0])
            assert [row[0] for row in two.fetchall()] == [1, 2, 3]


def test_tickets_of_a_daemon_that_is_gone_are_unknown(tmp_path):
    if real_postgres.programs() is None:
        pytest.skip("no PostgreSQL server is installed (package postgresql)")
    with cluster(tmp_path, 2) as pair:
        one, two = (Client(daemon) for daemon in pair)
        ticket, handle = one.ticket("SELECT 1"), one.prepare("SELECT 1")
        known = Client(pair[1], token=one.token)
        unknown = Client(pair[1], token=Client(pair[0]).token)
        assert known.run("SELECT 1") == [(1,)]
        pair[0].end()
        until = time.monotonic() + LIMIT
        for run in (lambda: two.fetch(ticket), lambda: two.execute(handle)):
            # As long as the other daemon is not known to be gone, it does not answer.
            while True:
                with pytest.raises((KeyError, flight.FlightUnavailableError)) as caught:
                    run()
                is_gone = issubclass(caught.type, KeyError)
                assert f"SQLSTATE: {'26000' if is_gone else '57P03'}" in str(caught.value)
                if is_gone:
                    break
                assert time.monotonic() < until
        assert two.run("SELECT 1") == known.run("SELECT 1") == [(1,)]
        refused(lambda: unknown.run("SELECT 1"), flight.FlightUnauthenticatedError, "28000")
