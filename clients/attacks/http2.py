"""HTTP/2 and gRPC over a plain socket, as far as an attacker and a Flight SQL report need them.

Answers' headers are not decoded: a call that succeeds sends DATA, one that fails sends none.
"""

import struct

from wire import connect

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GO_AWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
SERVICE = "/arrow.flight.protocol.FlightService/"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header field of HPACK, neither indexed nor compressed."""
    return b"\0" + _length(len(name)) + name.encode() + _length(len(value)) + value.encode()


def _length(count):
    if count < 127:
        return bytes([count])
    out, rest = b"\x7f", count - 127
    while rest >= 128:
        out, rest = out + bytes([rest % 128 + 128]), rest // 128
    return out + bytes([rest])


def call_headers(method, **more):
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": SERVICE + method,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
        **more,
    }
    return b"".join(literal(name, value) for name, value in fields.items())


def grpc(message):
    return b"\0" + struct.pack("!I", len(message)) + message


def varint(number):
    out = b""
    while number >= 128:
        out, number = out + bytes([number % 128 + 128]), number // 128
    return out + bytes([number])


def field(number, value):
    """A field of protobuf: bytes, text or a number."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def statement(sql):
    """A descriptor of Flight that asks for a query."""
    name = "type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"
    command = field(1, name) + field(2, field(1, sql))
    return field(1, 2) + field(2, command)


def table_path(*names):
    return field(1, 1) + b"".join(field(3, name) for name in names)


def flight_data(header, body, descriptor=None):
    start = field(1, descriptor) if descriptor else b""
    return start + field(2, header) + field(1000, body)


def read_fields(message):
    """Fields of a protobuf message that are bytes, in order."""
    at, found = 0, []

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = number()
        size = number()
        if key & 7 == 2:
            found.append((key >> 3, message[at : at + size]))
            at += size
    return found


class Connection:
    """A connection; `answers` has what each stream was sent."""

    def __init__(self, port):
        self.sock = connect(port)
        self.file = self.sock.makefile("rb")
        self.sock.sendall(PREFACE + frame(SETTINGS) + frame(WINDOW, payload=struct.pack("!I", 1 << 30)))
        self.stream = -1
        self.answers, self.ended = {}, set()

    def open(self, method, **more):
        """Begins a call; returns its stream."""
        self.stream += 2
        self.answers[self.stream] = b""
        self.sock.sendall(frame(HEADERS, END_HEADERS, self.stream, call_headers(method, **more)))
        return self.stream

    def send(self, stream, data, end=False):
        self.sock.sendall(frame(DATA, END_STREAM if end else 0, stream, data))

    def take(self):
        """Takes one frame in; False once the server has closed the connection."""
        head = self.file.read(9)
        if len(head) < 9:
            return False
        length = int.from_bytes(head[:3], "big")
        kind, flags, stream = struct.unpack("!BBI", head[3:])
        payload = self.file.read(length)
        if kind == DATA:
            self.answers[stream] += payload
            if payload:
                grown = struct.pack("!I", len(payload))
                self.sock.sendall(frame(WINDOW, 0, stream, grown) + frame(WINDOW, 0, 0, grown))
        if kind in (SETTINGS, PING) and not flags & ACK:
            self.sock.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
        if kind == RESET or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self.ended.add(stream)
        return True

    def until_ended(self, *streams):
        """Waits for the end of calls; returns the messages of the first."""
        while not self.ended.issuperset(streams):
            if not self.take():
                raise ConnectionError("the server closed the connection")
        data, found = self.answers[streams[0]], []
        while len(data) >= 5:
            (length,) = struct.unpack("!I", data[1:5])
            found.append(data[5 : 5 + length])
            data = data[5 + length :]
        return found

    def call(self, method, message, **more):
        """The messages that answer a call."""
        stream = self.open(method, **more)
        self.send(stream, grpc(message), end=True)
        return self.until_ended(stream)

    def close(self):
        self.file.close()
        self.sock.close()


def query(port, sql, **more):
    """Number of messages with rows that a query is answered with over Flight SQL."""
    connection = Connection(port)
    try:
        (info,) = connection.call("GetFlightInfo", statement(sql), **more)
        (endpoint,) = [value for number, value in read_fields(info) if number == 3]
        (ticket,) = [value for number, value in read_fields(endpoint) if number == 1]
        messages = connection.call("DoGet", ticket, **more)
        return len(messages) - 1
    finally:
        connection.close()
