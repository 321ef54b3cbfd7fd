"""Clients that connect and say nothing, or not enough: others log in and get their reports."""

import contextlib
import itertools
import os
import struct
import time

import pytest

import http2
import wire
from conftest import number

COUNT = number("CONNECTIONS", 200)
SECONDS = number("SECONDS", 0)
PORTS = ("pg", "http", "flight")

# The beginnings of conversations that never go on.
HALF_OPEN = {
    "pg": [
        b"\0\0",
        wire.startup("me")[:-3],
        wire.SSL_REQUEST,
        struct.pack("!i", 9000) + b"x" * 100,
        # Where clients must log in, the server waits for the first word.
        wire.startup("admin"),
    ],
    "http": [
        b"P",
        b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nX-A: ",
        b"GET /health HTTP/1.1\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(50)),
        wire.request("GET", "/health").replace(b"Connection: close\r\n", b""),
    ],
    "flight": [
        http2.PREFACE[:10],
        http2.PREFACE,
        http2.PREFACE + http2.frame(http2.SETTINGS),
        http2.PREFACE
        + http2.frame(http2.SETTINGS)
        + http2.frame(http2.HEADERS, 0, 1, http2.call_headers("DoPut")[:40]),
    ],
}


def keep_going(server):
    """Reports are answered at once, and for as long as the environment says."""
    until = time.monotonic() + SECONDS
    server.is_well()
    while time.monotonic() < until:
        server.report()
    server.is_well()


@contextlib.contextmanager
def held(port, beginnings, count=COUNT):
    """Connections that stay as they are."""
    sockets = []
    try:
        for beginning in itertools.islice(itertools.cycle(beginnings), count):
            sock = wire.connect(port)
            sockets.append(sock)
            with contextlib.suppress(ConnectionError):
                sock.sendall(beginning)
        yield sockets
    finally:
        for sock in sockets:
            sock.close()


@pytest.mark.parametrize("asks", [False, True], ids=["open", "with logins"])
def test_silent_connections_delay_nobody(server, asks):
    victim = server(asks=asks)
    with contextlib.ExitStack() as stack:
        for name in PORTS:
            stack.enter_context(held(victim.ports[name], [b""]))
        keep_going(victim)


def test_half_open_connections_delay_nobody(server):
    victim = server(asks=True)
    with contextlib.ExitStack() as stack:
        for name in PORTS:
            stack.enter_context(held(victim.ports[name], HALF_OPEN[name]))
        keep_going(victim)


BEGUN = {
    "pg": struct.pack("!i", 9000) + struct.pack("!i", 3 << 16),
    "http": b"GET /health HTTP/1.1\r\nHost: localhost\r\n",
    "flight": http2.PREFACE + http2.frame(http2.SETTINGS),
}


def are_closed(victim, more):
    """Conversations that have begun and go on with `more`, again and again, are closed by the server."""
    with contextlib.ExitStack() as stack:
        waiting = {name: stack.enter_context(wire.connect(victim.ports[name])) for name in PORTS}
        for name, sock in waiting.items():
            sock.sendall(BEGUN[name])
            sock.settimeout(0.1)
        deadline = time.monotonic() + wire.LIMIT
        while waiting:
            assert time.monotonic() < deadline, f"the server still waits for {list(waiting)}"
            for name, sock in list(waiting.items()):
                try:
                    sock.sendall(more[name])
                    if not sock.recv(4096):
                        del waiting[name]
                except TimeoutError:
                    pass
                except ConnectionError:
                    del waiting[name]


def test_slow_heads_end(server):
    """A byte now and then does not keep a connection."""
    victim = server("--login-timeout-s", "5")
    are_closed(victim, {"pg": b"x", "http": b"X-A: b\r\n", "flight": http2.frame(http2.SETTINGS)})
    victim.is_well()


def test_heads_without_end_end(server):
    """Nor do as many bytes as the server takes, and they do not stay in memory."""
    victim = server("--login-timeout-s", "5")
    lines = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 1000) for n in range(100))
    # Headers that never end, and that belong to no call.
    frames = http2.frame(http2.HEADERS, 0, 1, http2.call_headers("DoPut"))
    frames += http2.frame(9, 0, 1, http2.literal("x", "y" * 10000)) * 10
    are_closed(victim, {"pg": b"x" * 100000, "http": lines, "flight": frames})
    victim.is_well()
    assert victim.memory("VmHWM") < victim.began_with + (128 << 20)


def test_idle_http_connections_make_room(server):
    """Connections kept for later requests are the first to go."""
    victim = server()
    with contextlib.ExitStack() as stack:
        idle = []
        for _ in range(COUNT):
            sock = stack.enter_context(wire.connect(victim.ports["http"]))
            sock.sendall(wire.request("GET", "/health").replace(b"Connection: close\r\n", b""))
            assert sock.recv(4096).startswith(b"HTTP/1.1 200")
            idle.append(sock)
        victim.is_well()
        assert wire.closed(idle[0])


def test_logins_that_do_not_go_on_hold_no_session(server):
    victim = server("--max-connections", "4", asks=True)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            sock = stack.enter_context(wire.connect(victim.ports["pg"]))
            sock.sendall(wire.startup("admin"))
            # The server has asked for the password.
            assert sock.recv(1) == b"R"
        sessions = [wire.eventually(victim.session) for _ in range(4)]
        with pytest.raises(wire.Refused) as refused:
            victim.session()
        assert refused.value.sqlstate == "53300"
        for session in sessions:
            assert session.query("SELECT 1") == [["1"]]
            session.close()


def test_one_address_has_no_more_than_its_part(server):
    victim = server("--max-connections-per-address", "3")
    sessions = [wire.eventually(victim.session) for _ in range(3)]
    for _ in range(50):
        with pytest.raises(wire.Refused) as refused:
            victim.session()
        assert refused.value.sqlstate == "53300"
        assert "your address" in str(refused.value)
    # The log tells of them, but not of each.
    lines = victim.log_file.read_text(errors="replace").count("connections are refused")
    assert 1 <= lines < 50
    # Linux answers on all of 127.0.0.0/8.
    other = victim.session(source="127.0.0.2")
    assert other.query("SELECT 1") == [["1"]]
    for session in [*sessions, other]:
        assert session.query("SELECT 1") == [["1"]]
        session.close()


def test_descriptors_are_left_for_files(server):
    """As many connections as there may be, all of them in use: log and files are still opened."""
    victim = server("--max-connections", "1000")
    sessions = []
    with pytest.raises(wire.Refused) as refused:
        while True:
            sessions.append(victim.session())
    assert refused.value.sqlstate == "53300"
    assert len(sessions) >= 8
    with held(victim.ports["http"], [b""]), held(victim.ports["flight"], [b""]):
        used = len(os.listdir(f"/proc/{victim.process.pid}/fd"))
        for number_of, session in enumerate(sessions[:10]):
            session.query(f"CREATE TABLE t{number_of} (id bigint)")
            session.query(f"INSERT INTO t{number_of} VALUES (1), (2)")
            session.query(f"FLUSH TABLE t{number_of}")
            assert session.query(f"SELECT count(*) FROM t{number_of}") == [["2"]]
        assert used > len(sessions)
        log = victim.log_file.read_text(errors="replace")
        assert "Too many open files" not in log and "os error 24" not in log, victim.tail()
    for session in sessions:
        session.close()


def test_messages_without_end_are_not_read_before_a_login(server):
    """Calls that announce a large message and have no user are answered before it comes."""
    victim = server(asks=True)
    connections = []
    for _ in range(8):
        connection = http2.Connection(victim.ports["flight"])
        connections.append(connection)
        streams = [connection.open("GetFlightInfo") for _ in range(20)]
        for stream in streams:
            connection.send(stream, b"\0" + struct.pack("!I", 60 << 20))
        # Without an answer this waits until it fails: the messages never come.
        assert connection.until_ended(*streams) == []
    # A wrong token is no user either.
    stream = connections[0].open("DoAction", authorization="Bearer 00")
    connections[0].send(stream, b"\0" + struct.pack("!I", 60 << 20))
    assert connections[0].until_ended(stream) == []
    for connection in connections:
        connection.close()
    victim.is_well()


def test_messages_on_their_way_in_are_bounded_together(server):
    """A quarter of the memory limit is room for one message of 60 MiB, not for three."""
    victim = server()
    connection = http2.Connection(victim.ports["flight"])
    streams = [connection.open("GetFlightInfo") for _ in range(3)]
    for stream in streams:
        connection.send(stream, b"\0" + struct.pack("!I", 60 << 20))
    while len(connection.ended) < 2:
        assert connection.take()
    connection.close()
    victim.is_well()
