"""Damaged conversations in each protocol: the server answers or hangs up, and goes on."""

import contextlib
import random
import socket
import struct

import pytest

import http2
import wire
from conftest import REPORT, number

FIRST, COUNT = number("SEED", 1), number("MESSAGES", 600)


def text(value):
    return value.encode() + b"\0"


def pg_conversations():
    simple = wire.message(b"Q", text(REPORT))
    parse = wire.message(b"P", text("s") + text("SELECT $1::bigint + 1") + struct.pack("!hi", 1, 20))
    bind = wire.message(b"B", text("p") + text("s") + struct.pack("!hhhi", 1, 1, 1, 8) + struct.pack("!qhh", 41, 1, 1))
    describe = wire.message(b"D", b"S" + text("s")) + wire.message(b"D", b"P" + text("p"))
    execute = wire.message(b"E", text("p") + struct.pack("!i", 0)) + wire.message(b"C", b"S" + text("s"))
    sync, flush = wire.message(b"S"), wire.message(b"H")
    copy = wire.message(b"Q", text("COPY target FROM STDIN")) + wire.message(b"d", b"1\t2\t3\n") + wire.message(b"c")
    start, end = wire.startup("me", application_name="fuzz"), wire.message(b"X")
    cancel = struct.pack("!iiii", 16, 80877102, 1, 2)
    return [
        [start, simple, end],
        [wire.SSL_REQUEST, start, simple, end],
        [start, parse, bind, describe, execute, flush, sync, end],
        [start, copy, simple, end],
        [start, wire.message(b"Q", text("BEGIN; SELECT 1; COMMIT")), wire.message(b"F", bytes(12)), end],
        [start, wire.message(b"p", text("secret")), end],
        [cancel],
    ]


def http_conversations():
    sql = REPORT.encode()
    as_json = b'{"sql": "SELECT $1", "parameters": [1, "2", null, {"a": [1.5e300]}]}'
    chunked = b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nSELECT 1\r\n0\r\n\r\n"
    csv = b"account,day,imps\n1,2,3\n4,5,6\n"
    return [
        [wire.request("POST", "/v1/sql", sql, {"Content-Type": "text/plain"})],
        [wire.request("POST", "/v1/sql?format=csv&max_rows=3", as_json, {"Content-Type": "application/json"})],
        [chunked, wire.request("GET", "/v1/status")],
        [wire.request("POST", "/v1/tables/public/target/rows", csv, {"Content-Type": "text/csv"})],
        [wire.request("POST", "/v1/tables/public/target/rows?max_errors=9", csv, {"Content-Type": "text/csv"})],
        [wire.request("GET", path) for path in ("/", "/metrics", "/v1/tables", "/v1/queries", "/v1/shapes")],
        [wire.request("DELETE", "/v1/queries/1"), wire.request("POST", "/v1/hql", b"SHOW TABLES;")],
    ]


def flight_conversations():
    hello = http2.PREFACE + http2.frame(http2.SETTINGS, payload=struct.pack("!HI", 4, 1 << 20))

    def call(stream, method, message):
        headers = http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.call_headers(method))
        return [headers, http2.frame(http2.DATA, http2.END_STREAM, stream, http2.grpc(message))]

    action = http2.field(1, "CreatePreparedStatement") + http2.field(2, http2.statement("SELECT 1"))
    put = http2.flight_data(bytes(64), bytes(64), http2.table_path("public", "target"))
    return [
        [hello, *call(1, "GetFlightInfo", http2.statement(REPORT))],
        [hello, *call(1, "GetSchema", http2.statement(REPORT)), *call(3, "DoAction", action)],
        [hello, *call(1, "DoPut", put), http2.frame(http2.PING, payload=bytes(8))],
        [hello, *call(1, "Handshake", b""), *call(3, "ListActions", b""), http2.frame(http2.GO_AWAY, payload=bytes(8))],
        [hello, *call(1, "DoGet", http2.field(1, b"ticket")), http2.frame(http2.RESET, stream=1, payload=bytes(4))],
    ]


CONVERSATIONS = {"pg": pg_conversations, "http": http_conversations, "flight": flight_conversations}
LENGTHS = [struct.pack(form, value) for form in ("!i", "!I") for value in (0, 1, 4, 5, 1 << 20, 2**31 - 1)]
LENGTHS += [b"\xff\xff\xff\xff", b"\x80\0\0\0"]


def damaged(rng, parts):
    """A conversation with some of its parts changed, moved, doubled, cut."""
    parts = list(parts)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(parts))
        part = bytearray(parts[at])
        place = rng.randrange(len(part) + 1)
        kind = rng.randrange(8)
        if kind == 0:
            part[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            part[place : place + 4] = rng.choice(LENGTHS)
        elif kind == 2:
            # Where most lengths stand.
            part[1:5] = rng.choice(LENGTHS)
        elif kind == 3:
            del part[place:]
        elif kind == 4:
            part[place:place] = rng.randbytes(rng.choice([1, 8, 100, 5000]))
        elif kind == 5:
            parts.insert(rng.randrange(len(parts)), parts[at])
        elif kind == 6:
            parts.insert(rng.randrange(len(parts)), parts.pop(at))
            continue
        else:
            part = bytearray(rng.randbytes(rng.randint(0, 300)))
        parts[min(at, len(parts) - 1)] = bytes(part)
    return b"".join(parts)


@pytest.mark.parametrize("asks", [False, True], ids=["open", "with logins"])
def test_damaged_conversations_end(server, asks):
    victim = server(asks=asks)
    victim.sql("CREATE TABLE target (account bigint, day int, imps bigint)")
    for name, conversations in CONVERSATIONS.items():
        conversations = conversations()
        for seed in range(FIRST, FIRST + COUNT // 2):
            rng = random.Random(seed)
            converse(victim, name, damaged(rng, rng.choice(conversations)), seed)
        victim.is_well()


def converse(victim, name, data, seed):
    """Says all of it, and waits until the server has said all it has to say."""
    with wire.connect(victim.ports[name]) as sock:
        try:
            # A server that hangs up in the middle is right.
            with contextlib.suppress(ConnectionError):
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
            wire.closed(sock)
        except TimeoutError:
            pytest.fail(f"{name}: neither an answer nor an end of seed {seed}: {data!r}")
        except OSError:
            # The other side is gone, which shutdown() does not like.
            pass
    assert victim.process.poll() is None, f"{name}: seed {seed} ended the server: {victim.tail()}"
