"""The PostgreSQL protocol and HTTP over plain sockets, as far as an attacker and a report need them."""

import base64
import hashlib
import hmac
import json
import os
import socket
import struct
import time

# Nothing takes so long unless it hangs.
LIMIT = 120


def connect(port, source=None):
    """A socket to a port of this machine, from the address `source` of it."""
    address = (source, 0) if source else None
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT, source_address=address)


def closed(sock):
    """Waits until the server has closed the connection."""
    try:
        while sock.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


class Refused(Exception):
    """An ErrorResponse."""

    def __init__(self, fields):
        super().__init__(f"{fields.get('C')}: {fields.get('M')}")
        self.sqlstate = fields.get("C")


def message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


def startup(user, **parameters):
    pairs = {"user": user, "database": "stoa", **parameters}
    text = b"".join(f"{name}\0{value}\0".encode() for name, value in pairs.items())
    body = struct.pack("!i", 3 << 16) + text + b"\0"
    return struct.pack("!i", len(body) + 4) + body


SSL_REQUEST = struct.pack("!ii", 8, 80877103)


class Postgres:
    """A session."""

    def __init__(self, port, user="me", password=None, source=None, **parameters):
        self.sock = connect(port, source)
        self.file = self.sock.makefile("rb")
        try:
            self.sock.sendall(startup(user, **parameters))
            self._log_in(password)
            self._until_ready()
        except BaseException:
            self.close()
            raise

    def _log_in(self, password):
        kind, body = self.next()
        (code,) = struct.unpack("!i", body[:4])
        if code == 0:
            return
        assert code == 10, f"login by {code}"
        nonce = base64.b64encode(os.urandom(18)).decode()
        bare = f"n=,r={nonce}"
        first = f"n,,{bare}".encode()
        initial = b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first
        self.sock.sendall(message(b"p", initial))
        server_first = self._sasl(11)
        parts = dict(part.split("=", 1) for part in server_first.split(","))
        salt, rounds = base64.b64decode(parts["s"]), int(parts["i"])
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = f"c=biws,r={parts['r']}"
        signed = f"{bare},{server_first},{without_proof}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature))
        final = f"{without_proof},p={base64.b64encode(proof).decode()}"
        self.sock.sendall(message(b"p", final.encode()))
        self._sasl(12)
        kind, body = self.next()
        assert (kind, body) == (b"R", b"\0\0\0\0"), (kind, body)

    def _sasl(self, expected):
        kind, body = self.next()
        (code,) = struct.unpack("!i", body[:4])
        assert (kind, code) == (b"R", expected), (kind, body)
        return body[4:].decode()

    def next(self):
        """The next message; an ErrorResponse is raised."""
        head = self.file.read(5)
        if len(head) < 5:
            raise ConnectionError("the server closed the connection")
        kind, length = head[:1], struct.unpack("!i", head[1:])[0]
        body = self.file.read(length - 4)
        if kind == b"E":
            fields = (part.decode("utf-8", "replace") for part in body.split(b"\0") if part)
            raise Refused({part[0]: part[1:] for part in fields})
        return kind, body

    def _until_ready(self):
        rows, failure = [], None
        while True:
            try:
                kind, body = self.next()
            except Refused as error:
                failure = error
                continue
            if kind == b"D":
                rows.append(_row(body))
            if kind == b"Z":
                if failure:
                    raise failure
                return rows

    def query(self, sql):
        """The rows of a statement, as texts."""
        self.sock.sendall(message(b"Q", sql.encode() + b"\0"))
        return self._until_ready()

    def close(self):
        self.file.close()
        self.sock.close()


def eventually(take):
    """Repeats what is refused for want of room: places of those who have left come back a little later."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            return take()
        except Refused as error:
            if error.sqlstate != "53300" or time.monotonic() > deadline:
                raise


def _row(body):
    (count,), at, row = struct.unpack("!h", body[:2]), 2, []
    for _ in range(count):
        (length,) = struct.unpack("!i", body[at : at + 4])
        at += 4
        row.append(None if length < 0 else body[at : at + length].decode())
        at += max(length, 0)
    return row


def request(method, path, body=b"", headers=None, user=None):
    """An HTTP request, complete; the connection ends after its answer."""
    lines = {"Host": "localhost", "Connection": "close", "Content-Length": len(body), **(headers or {})}
    if user:
        lines["Authorization"] = "Basic " + base64.b64encode(":".join(user).encode()).decode()
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def ask(port, *arguments, **named):
    """Status and body of the answer to a request."""
    with connect(port) as sock:
        sock.sendall(request(*arguments, **named))
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        body = _dechunked(body)
    return int(head.split(b" ", 2)[1]), body


def _dechunked(body):
    out = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        size = int(size, 16)
        out, body = out + rest[:size], rest[size + 2 :]
        if size == 0:
            break
    return out


def sql(port, text, form="json", user=None):
    status, body = ask(port, "POST", f"/v1/sql?format={form}", text.encode(), {"Content-Type": "text/plain"}, user)
    if form == "json":
        body = json.loads(body)
    return status, body
