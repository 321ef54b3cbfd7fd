"""Damaged conversations in each protocol, from the seed of a conversation always the same.

Most keep in step: bodies of messages are changed, messages are doubled and change places, but each still
says how long it is, and the server has to look at all of them. Some end with what breaks the protocol
itself: lengths that are not true, unknown kinds, bytes of no meaning. What comes behind that is not counted.
"""

import random
import struct

import http2
import wire
from conftest import REPORT

# Messages that keep in step, of one conversation.
LENGTH = 100
NUMBERS = [struct.pack(form, value) for form in ("!i", "!h", "!q") for value in (0, 1, 4, 5, -1)]
NUMBERS += [struct.pack("!i", value) for value in (1 << 20, 2**31 - 1, -(2**31))] + [b"\x7f\xff", b"\x80\0", b"\xff" * 8]


def text(value):
    return value.encode() + b"\0"


def changed(rng, body):
    """Bytes with one change."""
    body = bytearray(body)
    place = int(rng.random() * (len(body) + 1))
    kind = int(rng.random() * 7)
    if kind < 2:
        body[place : place + 1] = bytes([int(rng.random() * 256)])
    elif kind == 2:
        new = rng.choice(NUMBERS)
        body[place : place + len(new)] = new
    elif kind == 3:
        del body[place:]
    elif kind == 4:
        del body[place : place + 1 + int(rng.random() * 8)]
    elif kind == 5:
        body[place:place] = rng.randbytes(rng.choice([1, 8, 100, 3000]))
    else:
        body[place:place] = body[: 1 + int(rng.random() * 40)]
    return bytes(body)


class Conversation:
    """`data` holds `count` messages, of which all are looked at; `tail` is what ends it, or none."""

    def __init__(self, seed, name):
        self.rng = random.Random(seed)
        self.random = self.rng.random
        self.count, self.calls, self.out = 0, 0, []
        self.tail = None
        getattr(self, name)()
        self.data = b"".join(self.out)

    def pick(self, choices):
        return choices[int(self.random() * len(choices))]

    def broken(self, parts):
        """A damaged end: one of the parts with a change that nothing sets right."""
        part = self.pick(parts)
        form = self.rng.randrange(4)
        if form == 0:
            return changed(self.rng, part)
        if form == 1:
            # Where most lengths stand.
            return part[:1] + self.pick(NUMBERS) + part[5:]
        if form == 2:
            return part[: self.rng.randrange(len(part) + 1)]
        return self.rng.randbytes(self.rng.randint(1, 300))

    # The PostgreSQL protocol.

    def pg(self):
        begin = PG_STARTS[0]
        if self.random() < 0.1:
            begin = self.pick(PG_STARTS)
            if self.random() < 0.7:
                begin = changed(self.rng, begin)
            # Nobody knows whether the server goes on behind it.
            self.count, self.out, self.tail = 1, [begin], PG_END
            return
        self.out.append(begin)
        self.count = 1
        while self.count < LENGTH:
            group = self.pick(PG_GROUPS)
            if self.random() < 0.6:
                group = self.changed_group(group)
            self.count += len(group)
            for kind, body in group:
                self.out += (kind, struct.pack("!i", len(body) + 4), body)
        if self.random() < 0.15:
            self.tail = self.broken([wire.message(kind, body) for group in PG_GROUPS for kind, body in group])
        else:
            # Out of a COPY, if it is in one, and goodbye.
            self.out.append(PG_END)
            self.count += 3

    def changed_group(self, group):
        group = list(group)
        for _ in range(self.pick([1, 1, 2, 3])):
            at = int(self.random() * len(group))
            kind, body = group[at]
            form = self.random()
            if form < 0.6:
                group[at] = kind, changed(self.rng, body)
            elif form < 0.7:
                group.insert(at, self.pick(group))
            elif form < 0.8:
                group.insert(int(self.random() * len(group)), group.pop(at))
            elif form < 0.9:
                group[at] = self.pick(self.pick(PG_GROUPS))
            else:
                # Another kind of message with this body, but for the one that ends the conversation.
                group[at] = self.pick(PG_KINDS), body
        return group

    # HTTP.

    def http(self):
        for _ in range(LENGTH // 2):
            method, path, headers, body = self.pick(HTTP)
            form = self.random()
            if form < 0.3:
                body = changed(self.rng, body)
            elif form < 0.45:
                at = int(self.random() * len(path)) + 1
                path = path[:at] + self.pick(PATHS) + path[at + self.pick([0, 1, 5]) :]
            elif form < 0.5:
                method = self.pick(["GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "X"])
            elif form < 0.6:
                headers = headers + self.pick(HEADERS)
            if "chunked" in headers:
                middle = int(self.random() * (len(body) + 1))
                parts = [part for part in (body[:middle], body[middle:]) if part]
                body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
            else:
                headers = f"{headers}Content-Length: {len(body)}\r\n"
            self.out.append(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode() + body)
            self.count += 1
        if self.random() < 0.15:
            self.tail = self.broken(self.out)
        else:
            self.out.append(wire.request("GET", "/health"))
            self.count += 1

    # Flight: HTTP/2, whose messages are frames, with gRPC and protobuf within them.

    def flight(self):
        self.out += [http2.PREFACE, FLIGHT_HELLO]
        self.count, stream = 2, -1
        while self.count < LENGTH:
            if self.random() < 0.1:
                self.out.append(self.pick(FLIGHT_BETWEEN))
                self.count += 1
                continue
            stream += 2
            headers, message = self.pick(FLIGHT_CALLS)
            if self.random() < 0.5:
                message = changed(self.rng, message)
            if self.random() < 0.1:
                headers += self.pick(FLIGHT_HEADERS)
            data = http2.grpc(message)
            if self.random() < 0.1:
                data = changed(self.rng, data)
            self.out.append(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, headers))
            cut = int(self.random() * len(data)) if self.random() < 0.2 else len(data)
            self.count += 2
            if cut < len(data):
                self.out.append(http2.frame(http2.DATA, 0, stream, data[:cut]))
                data = data[cut:]
                self.count += 1
            self.out.append(http2.frame(http2.DATA, http2.END_STREAM, stream, data))
            self.calls += 1
        if self.random() < 0.15:
            self.tail = self.broken([*FLIGHT_BETWEEN, *FLIGHT_WRONG, *self.out[2:]])
        else:
            self.tail = b""


def _pg_groups():
    def query(sql):
        return [(b"Q", text(sql))]

    parse = b"P", text("s") + text("SELECT $1::bigint + 1") + struct.pack("!hi", 1, 20)
    bind = b"B", text("p") + text("s") + struct.pack("!hhhi", 1, 1, 1, 8) + struct.pack("!qhh", 41, 1, 1)
    many = b"P", text("m") + text("SELECT $1, $2::text, $3::numeric, $4::date, $5::bigint[]") + struct.pack("!h", 0)
    values = [b"7", b"x", b"1.5", b"2015-01-05", b"{1,2}"]
    bound = b"".join(struct.pack("!i", len(value)) + value for value in values)
    bind_many = b"B", text("") + text("m") + struct.pack("!hh", 0, 5) + bound + struct.pack("!h", 0)
    report = b"P", text("") + text(REPORT) + struct.pack("!h", 0)
    unnamed = b"B", text("") + text("") + struct.pack("!hhh", 0, 0, 0)
    execute, sync, flush = (b"E", text("") + struct.pack("!i", 0)), (b"S", b""), (b"H", b"")
    close = [(b"C", b"S" + text("s")), (b"C", b"P" + text("p")), (b"C", b"S" + text("m"))]
    copy = query("COPY target FROM STDIN") + [(b"d", b"1\t2\t3\n"), (b"d", b"4\t5\t6\n")]
    return [
        [close[0], parse, bind, (b"D", b"S" + text("s")), (b"D", b"P" + text("p")), (b"E", text("p") + struct.pack("!i", 0)), close[1], close[0], sync],
        [close[0], parse, sync, bind, flush, (b"E", text("p") + struct.pack("!i", 1)), (b"E", text("p") + bytes(4)), sync],
        [close[2], many, (b"D", b"S" + text("m")), bind_many, execute, bind_many, execute, close[2], sync],
        [report, unnamed, (b"D", b"P\0"), execute, sync],
        [report, unnamed, execute, unnamed, execute, unnamed, execute, sync],
        query(REPORT),
        query("SELECT 1; SELECT 'a', NULL; SHOW timezone"),
        query("SET application_name = 'x'"),
        query(""),
        query("SELEC") + [sync],
        [*query("BEGIN"), *query("SAVEPOINT a"), *query("SELECT 1/0"), *query("ROLLBACK TO a"), *query("ROLLBACK")],
        [*query("BEGIN"), *query("DECLARE c CURSOR FOR SELECT * FROM visits"), *query("FETCH 2 FROM c"), *query("ROLLBACK")],
        copy + [(b"f", text("enough"))],
        [*copy[:2], (b"H", b""), *copy[2:], (b"f", text(""))],
        [(b"P", text("") + text("COPY target FROM STDIN") + bytes(2)), unnamed, execute, (b"d", b"1\t2\n"), (b"c", b""), sync],
        query("COPY (SELECT * FROM visits LIMIT 3) TO STDOUT"),
        [(b"F", struct.pack("!ihhhh", 1, 0, 0, 0, 0))],
        [(b"d", b"late"), (b"c", b""), (b"f", text("late"))],
        [flush, sync, sync],
    ]  # fmt: skip


PG_GROUPS = _pg_groups()
PG_KINDS = [kind.encode() for kind in "QPBDECSHdcfF"]
PG_END = wire.message(b"f", text("")) + wire.message(b"S") + wire.message(b"X")
PG_STARTS = [
    wire.startup("me", application_name="fuzz", options="-c statement_timeout=5s"),
    wire.startup("me", database="nothing"),
    wire.startup("me", replication="true", _pq_="1", options="-c x=y --a-b=c\\ d"),
    wire.SSL_REQUEST,
    wire.SSL_REQUEST + wire.startup("me"),
    struct.pack("!ii", 8, 80877104),
    struct.pack("!iiii", 16, 80877102, 1, 2),
    wire.startup("me") + wire.message(b"p", text("secret")),
    struct.pack("!ii", 8, (3 << 16) + 2),
]

_TEXT, _JSON, _CSV = (f"Content-Type: {kind}\r\n" for kind in ("text/plain", "application/json", "text/csv"))
_SQL, _ROWS = REPORT.encode(), b"account,day,imps\n1,2,3\n4,5,6\n"
_PARAMETERS = b'{"sql": "SELECT $1, $2::text", "parameters": [1, "2"]}'
HTTP = [
    ("POST", "/v1/sql", _TEXT, _SQL),
    ("POST", "/v1/sql?format=csv&max_rows=3", _TEXT, _SQL),
    ("POST", "/v1/sql?format=arrow", _TEXT, _SQL),
    ("POST", "/v1/sql?format=ndjson", _TEXT + "Transfer-Encoding: chunked\r\n", _SQL),
    ("POST", "/v1/sql", _JSON, _PARAMETERS),
    ("POST", "/v1/sql", _JSON, b'{"sql": "SELECT $1::numeric, $2", "parameters": [1.5e300, {"a": [null, true, "x"]}]}'),
    ("POST", "/v1/sql", _JSON + "Transfer-Encoding: chunked\r\n", _PARAMETERS),
    ("POST", "/v1/sql", _TEXT, b"SELECT 1; SELEC"),
    ("POST", "/v1/tables/public/nothing/rows", _CSV, _ROWS),
    ("POST", "/v1/tables/public/target/rows?max_errors=9&header=x", _CSV, _ROWS),
    ("POST", "/v1/tables/public/target/rows", _CSV, b"account,day,imps\n1,x,3\n"),
    ("POST", "/v1/tables/public/target/rows", _JSON, b'{"account": 1, "day": 2, "imps": [3]}'),
    ("POST", "/v1/hql", _TEXT, b"SHOW TABLES;"),
    ("GET", "/v1/status", "", b""),
    ("GET", "/v1/tables", "", b""),
    ("GET", "/v1/tables/public/visits", "", b""),
    ("GET", "/v1/tables/public/visits/files", "", b""),
    ("GET", "/v1/queries", "", b""),
    ("GET", "/v1/queries/1/plan", "", b""),
    ("GET", "/v1/shapes", "", b""),
    ("DELETE", "/v1/queries/999999999", "", b""),
    ("GET", "/health", "", b""),
    ("GET", "/ready", "", b""),
    ("GET", "/nothing.js", "", b""),
    ("OPTIONS", "/v1/sql", "Origin: https://example.org\r\n", b""),
]
PATHS = ["%", "%00", "%ff", "..", "//", "?", "&", "=", "#", "%2e%2e%2f", "%C3%BC", "'", "\"", "9" * 40, "x" * 500, "-1", "+", ";", "~"]
HEADERS = [
    "Accept: text/csv\r\n",
    "Accept: application/vnd.apache.arrow.stream;q=0.x, */*\r\n",
    "Authorization: Basic eDp5\r\n",
    "Authorization: Basic !\r\n",
    "Authorization: Bearer x\r\n",
    "Content-Type: nothing\r\n",
    "Content-Encoding: gzip\r\n",
    "Origin: http://localhost\r\nSec-Fetch-Site: cross-site\r\n",
    "Host: example.org\r\n",
    "If-None-Match: *\r\nRange: bytes=0-1\r\n",
    "Upgrade: h2c\r\n",
    "Cookie: " + "x" * 3000 + "\r\n",
    "".join(f"X-{n}: y\r\n" for n in range(40)),
]


def _flight_calls():
    def action(kind, body=b""):
        return "DoAction", http2.field(1, kind) + http2.field(2, body)

    def command(name, body=b""):
        packed = http2.field(1, f"type.googleapis.com/arrow.flight.protocol.sql.{name}") + http2.field(2, body)
        return http2.field(1, 2) + http2.field(2, packed)

    def packed(name, body=b""):
        return http2.field(1, f"type.googleapis.com/arrow.flight.protocol.sql.{name}") + http2.field(2, body)

    report = http2.statement(REPORT)
    put = http2.flight_data(bytes(64), bytes(64), http2.table_path("public", "target"))
    create = packed("ActionCreatePreparedStatementRequest", http2.field(1, "SELECT $1::bigint"))
    return [
        ("GetFlightInfo", report),
        ("GetFlightInfo", http2.statement("SELEC")),
        ("GetFlightInfo", http2.table_path("public", "visits")),
        ("GetFlightInfo", command("CommandGetTables", http2.field(2, "%") + http2.field(5, 1))),
        ("GetFlightInfo", command("CommandPreparedStatementQuery", http2.field(1, bytes(16)))),
        ("GetSchema", report),
        ("GetSchema", command("CommandGetSqlInfo", http2.field(1, 3))),
        ("DoGet", http2.field(1, packed("CommandGetCatalogs"))),
        ("DoGet", http2.field(1, packed("CommandGetTableTypes"))),
        ("DoGet", http2.field(1, packed("CommandGetDbSchemas", http2.field(2, "pub_ic")))),
        ("DoGet", http2.field(1, packed("CommandGetTables", http2.field(3, "vis%")))),
        ("DoGet", http2.field(1, packed("CommandGetXdbcTypeInfo"))),
        ("DoGet", http2.field(1, packed("CommandGetSqlInfo"))),
        ("DoGet", http2.field(1, packed("TicketStatementQuery", http2.field(1, bytes(16))))),
        ("DoGet", http2.field(1, b"ticket")),
        ("DoPut", put),
        ("DoPut", http2.flight_data(b"", b"", command("CommandStatementUpdate", http2.field(1, "INSERT INTO nothing VALUES (1)"))[4:])),
        ("DoPut", http2.flight_data(b"", b"", command("CommandStatementIngest", http2.field(2, "target"))[4:])),
        action("CreatePreparedStatement", create),
        action("ClosePreparedStatement", packed("ActionClosePreparedStatementRequest", http2.field(1, bytes(16)))),
        action("CancelFlightInfo", http2.field(1, http2.field(2, report))),
        action("CancelQuery", packed("ActionCancelQueryRequest", http2.field(1, report))),
        action("SetSessionOptions", http2.field(1, http2.field(1, "timezone") + http2.field(2, http2.field(1, "UTC")))),
        action("GetSessionOptions"),
        action("CloseSession"),
        action("BeginTransaction"),
        action("nothing", b"x"),
        ("ListActions", b""),
        ("ListFlights", b""),
        ("Handshake", b""),
        ("DoExchange", put),
        ("PollFlightInfo", report),
        ("Nothing", report),
    ]


FLIGHT_CALLS = [(http2.call_headers(method), message) for method, message in _flight_calls()]
FLIGHT_HELLO = http2.frame(http2.SETTINGS, payload=struct.pack("!HI", 4, 1 << 20)) + http2.frame(http2.WINDOW, payload=struct.pack("!I", 1 << 30))
# A stream of its own, a connection's frames, and kinds that are to be skipped.
FLIGHT_BETWEEN = [
    http2.frame(http2.PING, payload=b"\1" * 8),
    http2.frame(http2.PING, http2.ACK, payload=bytes(8)),
    http2.frame(http2.WINDOW, payload=struct.pack("!I", 1)),
    http2.frame(http2.SETTINGS, payload=struct.pack("!HI", 4, 1 << 20)),
    http2.frame(http2.SETTINGS, payload=struct.pack("!HI", 99, 7)),
    http2.frame(http2.SETTINGS, http2.ACK),
    http2.frame(2, 0, 1, bytes(5)),
    http2.frame(77, 3, 0, b"unknown"),
]
FLIGHT_HEADERS = [
    http2.literal("authorization", "Basic eDp5"),
    http2.literal("authorization", "Bearer x"),
    http2.literal("grpc-timeout", "1n"),
    http2.literal("grpc-timeout", "99999999H"),
    http2.literal("grpc-timeout", "x"),
    http2.literal("grpc-encoding", "gzip"),
    http2.literal("cookie", "arrow_flight_session_id=x"),
    http2.literal("x-bin", "!!"),
    http2.literal("x", "y" * 4000),
]
FLIGHT_WRONG = [
    http2.frame(http2.RESET, stream=1, payload=bytes(4)),
    http2.frame(http2.DATA, 0, 999, b"x"),
    http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.call_headers("DoGet")),
    http2.frame(http2.HEADERS, 0, 1001, http2.call_headers("DoGet")[:40]),
    http2.frame(http2.HEADERS, http2.END_HEADERS, 1001, b"\xff\xff\xff\xff\xff"),
    http2.frame(http2.SETTINGS, payload=struct.pack("!HI", 4, 2**32 - 1)),
    http2.frame(http2.WINDOW, payload=struct.pack("!I", 2**31 - 1)),
    http2.frame(http2.GO_AWAY, payload=bytes(8)),
    http2.frame(http2.PING, payload=b"x"),
    http2.frame(9, 0, 1, b"x"),
    http2.frame(5, 4, 1, bytes(4)),
]
