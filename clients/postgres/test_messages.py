"""The protocol message by message: the same bytes to Stoa and to a real PostgreSQL give the same
sequence of answers, and each answer comes when PostgreSQL sends it.

A case is a list of turns: what is sent, and the answers that must come before anything more is sent.
An answer is the letter of its message; behind an ErrorResponse (E) comes its SQLSTATE, behind a
ReadyForQuery (Z) the state of the transaction. At the end of each case a Sync finds answers that were
too many.
"""

import os
import socket
import struct

import psycopg
import pytest

PATIENCE = 60


def message(kind, body=b""):
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def text(value):
    return value.encode() + b"\0"


def query(sql):
    return message("Q", text(sql))


def parse(sql, name="", types=()):
    oids = b"".join(struct.pack("!I", oid) for oid in types)
    return message("P", text(name) + text(sql) + struct.pack("!H", len(types)) + oids)


def bind(*values, portal="", name=""):
    coded = b"".join(
        struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value.encode()
        for value in values
    )
    counts = struct.pack("!HH", 0, len(values))
    return message("B", text(portal) + text(name) + counts + coded + struct.pack("!H", 0))


def describe(kind, name=""):
    return message("D", kind.encode() + text(name))


def execute(portal="", rows=0):
    return message("E", text(portal) + struct.pack("!i", rows))


def close(kind, name=""):
    return message("C", kind.encode() + text(name))


def data(lines):
    return message("d", lines.encode())


def fail(reason):
    return message("f", text(reason))


FLUSH, SYNC, DONE = message("H"), message("S"), message("c")
WRONG = "SELEC 1"
COPY = [parse("COPY m FROM STDIN"), bind(), execute()]

CASES = {
    "a statement that does not parse": [([parse(WRONG), FLUSH], "E42601"), ([SYNC], "ZI")],
    "an error without a Flush": [([parse(WRONG)], "E42601"), ([SYNC], "ZI")],
    "a table that is not there": [([parse("SELECT * FROM nothing"), FLUSH], "E42P01"), ([SYNC], "ZI")],
    "nothing is done until the Sync": [
        ([parse(WRONG), FLUSH], "E42601"),
        ([parse("SELECT 1"), bind(), execute(), FLUSH, query("SELECT 1"), close("S")], ""),
        ([SYNC], "ZI"),
        ([query("SELECT 1")], "T D C ZI"),
    ],
    "several commands in one Parse": [([parse("SELECT 1; SELECT 2"), FLUSH], "E42601"), ([SYNC], "ZI")],
    "Parse, Describe, Flush": [
        ([parse("SELECT $1::int4 + 1"), describe("S"), FLUSH], "1 t T"),
        ([bind("4"), describe("P"), execute(), FLUSH], "2 T D C"),
        ([SYNC], "ZI"),
    ],
    "too few values": [([parse("SELECT $1::int4"), bind(), FLUSH], "1 E08P01"), ([SYNC], "ZI")],
    "too many values": [([parse("SELECT 1"), bind("1"), FLUSH], "1 E08P01"), ([SYNC], "ZI")],
    "a value that is none": [([parse("SELECT $1::int4"), bind("x"), FLUSH], "1 E22P02"), ([SYNC], "ZI")],
    "no such statement": [
        ([describe("S", "none"), FLUSH], "E26000"),
        ([SYNC], "ZI"),
        ([bind(name="none"), FLUSH], "E26000"),
        ([SYNC], "ZI"),
    ],
    "no such portal": [
        ([describe("P", "none"), FLUSH], "E34000"),
        ([SYNC], "ZI"),
        ([execute("none"), FLUSH], "E34000"),
        ([SYNC], "ZI"),
    ],
    "Close of nothing": [([close("S", "none"), close("P", "none"), FLUSH], "3 3"), ([SYNC], "ZI")],
    "Close ends a statement": [
        ([parse("SELECT 1", "s"), close("S", "s"), FLUSH], "1 3"),
        ([bind(name="s"), FLUSH], "E26000"),
        ([SYNC], "ZI"),
    ],
    "a name that is taken": [
        ([parse("SELECT 1", "s"), parse("SELECT 2", "s"), FLUSH], "1 E42P05"),
        ([SYNC, close("S", "s"), SYNC], "ZI 3 ZI"),
    ],
    "a portal's name that is taken": [
        ([query("BEGIN")], "C ZT"),
        ([parse("SELECT 1"), bind(portal="p"), bind(portal="p"), FLUSH], "1 2 E42P03"),
        ([SYNC, query("ROLLBACK")], "ZE C ZI"),
    ],
    "an error while it is executed": [
        ([parse("INSERT INTO m VALUES ($1, 'x')"), bind(None), execute(), FLUSH], "1 2 E23502"),
        ([execute(), FLUSH], ""),
        ([SYNC], "ZI"),
    ],
    "a table that is dropped twice": [
        ([parse("DROP TABLE nothing"), bind(), execute(), FLUSH], "1 2 E42P01"),
        ([SYNC], "ZI"),
    ],
    "no rows": [
        ([parse("INSERT INTO m VALUES (1, 'x')"), describe("S"), bind(), describe("P"), execute(), SYNC],
         "1 t n 2 n C ZI"),
    ],
    "nothing at all": [
        ([parse(""), bind(), describe("P"), execute(), SYNC], "1 2 n I ZI"),
        ([query("")], "I ZI"),
        ([query(" ; -- nothing")], "I ZI"),
    ],
    "Sync alone": [([SYNC], "ZI"), ([SYNC, SYNC], "ZI ZI"), ([FLUSH], "")],
    "a pipeline goes on behind the Sync": [
        (
            [parse("SELECT 1"), bind(), execute(), parse(WRONG), parse("SELECT 2"), bind(), execute(), SYNC]
            + [parse("SELECT 3"), bind(), execute(), SYNC],
            "1 2 D C E42601 ZI 1 2 D C ZI",
        ),
    ],
    "a portal in parts": [
        ([query("BEGIN")], "C ZT"),
        ([parse("SELECT x FROM generate_series(1, 3) AS g(x)"), bind(portal="p"), execute("p", 2), FLUSH],
         "1 2 D D s"),
        ([execute("p", 2), FLUSH], "D C"),
        ([close("P", "p"), SYNC, query("COMMIT")], "3 ZT C ZI"),
    ],
    "a portal ends with its Sync": [
        ([parse("SELECT 1"), bind(portal="p"), SYNC], "1 2 ZI"),
        ([execute("p"), FLUSH], "E34000"),
        ([SYNC], "ZI"),
    ],
    "simple queries": [
        ([query(WRONG)], "E42601 ZI"),
        ([query("SELECT 1; SELECT nothing; SELECT 2")], "T D C E42703 ZI"),
        ([query("SELECT 1; SELECT 2")], "T D C T D C ZI"),
    ],
    "an error in a block": [
        ([query("BEGIN")], "C ZT"),
        ([parse(WRONG), FLUSH], "E42601"),
        ([SYNC], "ZE"),
        ([parse("SELECT 1"), FLUSH], "E25P02"),
        ([SYNC], "ZE"),
        ([query("SELECT 1")], "E25P02 ZE"),
        ([query("ROLLBACK")], "C ZI"),
    ],
    "a block ends with a pipeline": [
        ([parse("BEGIN"), bind(), execute(), parse(WRONG), SYNC], "1 2 C E42601 ZE"),
        ([parse("ROLLBACK"), bind(), execute(), SYNC], "1 2 C ZI"),
    ],
    "a block of writes": [
        ([query("BEGIN; INSERT INTO m VALUES (1, 'x')")], "C C ZT"),
        ([query("SAVEPOINT a; INSERT INTO m VALUES (2, 'y'); SELECT * FROM m")], "C C T D D C ZT"),
        ([query("ROLLBACK TO a; SELECT * FROM m")], "C T D C ZT"),
        ([query("ROLLBACK"), query("SELECT * FROM m")], "C ZI T C ZI"),
    ],
    "a block of writes as portals": [
        ([parse("BEGIN"), bind(), execute(), SYNC], "1 2 C ZT"),
        ([parse("INSERT INTO m VALUES (1, 'x')"), bind(), execute(), SYNC], "1 2 C ZT"),
        ([parse("COMMIT"), bind(), execute(), SYNC], "1 2 C ZI"),
        ([query("SELECT * FROM m")], "T D C ZI"),
    ],
    "a savepoint that is not there": [
        ([query("SAVEPOINT a")], "E25P01 ZI"),
        ([query("BEGIN; SAVEPOINT a; RELEASE a; ROLLBACK TO a")], "C C C E3B001 ZE"),
        ([query("COMMIT")], "C ZI"),
    ],
    "a block that only reads": [
        ([query("BEGIN READ ONLY; INSERT INTO m VALUES (1, 'x')")], "C E25006 ZE"),
        ([query("COMMIT"), query("SELECT * FROM m")], "C ZI T C ZI"),
    ],
    "a block that failed goes on at a savepoint": [
        ([query("BEGIN; INSERT INTO m VALUES (1, 'x'); SAVEPOINT a")], "C C C ZT"),
        ([query("SELECT * FROM nothing")], "E42P01 ZE"),
        ([query("INSERT INTO m VALUES (2, 'y')")], "E25P02 ZE"),
        ([query("ROLLBACK TO a; COMMIT"), query("SELECT * FROM m")], "C C ZI T D C ZI"),
    ],
    "COPY in of a bad line in a block": [
        ([query("BEGIN; INSERT INTO m VALUES (1, 'x')")], "C C ZT"),
        ([query("COPY m FROM STDIN")], "G"),
        ([data("1\tx\nx\ty\n"), DONE], "E22P02 ZE"),
        ([query("COMMIT"), query("SELECT * FROM m")], "C ZI T C ZI"),
    ],
    "the end of no block": [([query("COMMIT"), query("ROLLBACK")], "N C ZI N C ZI")],
    "COPY out": [
        ([query("COPY (SELECT 1) TO STDOUT")], "H d c C ZI"),
        ([parse("COPY (SELECT 1) TO STDOUT"), bind(), describe("P"), execute(), FLUSH], "1 2 n H d c C"),
        ([SYNC], "ZI"),
    ],
    "COPY in": [
        ([query("COPY m FROM STDIN")], "G"),
        ([data("1\tx\n"), data("2\t"), data("y\n"), DONE], "C ZI"),
    ],
    "COPY in that the client gives up": [
        ([query("COPY m FROM STDIN")], "G"),
        ([data("1\tx\n"), fail("no more")], "E57014 ZI"),
    ],
    "COPY in of a bad line": [
        ([query("COPY m FROM STDIN")], "G"),
        ([data("1\tx\nx\ty\n"), DONE], "E22P02 ZI"),
        ([data("2\tx\n"), DONE, query("SELECT 1")], "T D C ZI"),
    ],
    "COPY in of a bad line, told before the end": [
        ([query("COPY m FROM STDIN")], "G"),
        ([data("x\ty\n")], "E22P02 ZI"),
        ([data("2\tx\n"), DONE, query("SELECT 1")], "T D C ZI"),
    ],
    "COPY in, as a portal": [
        ([*COPY, FLUSH], "1 2 G"),
        ([data("1\tx\n"), DONE, FLUSH], "C"),
        ([SYNC], "ZI"),
    ],
    "COPY in with a Sync right behind it": [
        ([*COPY, SYNC], "1 2 G"),
        ([data("1\tx\n"), FLUSH, data("2\tx\n"), DONE, SYNC], "C ZI"),
    ],
    "COPY in, as a portal, of a bad line": [
        ([*COPY, FLUSH], "1 2 G"),
        ([data("x\ty\n")], "E22P02"),
        ([data("2\tx\n"), DONE, FLUSH, query("SELECT 1")], ""),
        ([SYNC], "ZI"),
    ],
    "COPY in, as a portal, that the client gives up": [
        ([*COPY, FLUSH], "1 2 G"),
        ([fail("no more")], "E57014"),
        ([parse("SELECT 1"), FLUSH], ""),
        ([SYNC], "ZI"),
    ],
    "COPY into nothing": [
        ([query("COPY nothing FROM STDIN")], "E42P01 ZI"),
        ([data("1\tx\n"), DONE, query("SELECT 1")], "T D C ZI"),
    ],
    "COPY into nothing, as a portal, that the client gives up then": [
        ([parse("COPY nothing FROM STDIN"), bind(), execute(), SYNC, fail("no"), SYNC], "1 2 E42P01 ZI ZI"),
        ([query("SELECT 1")], "T D C ZI"),
    ],
    "data without a COPY": [([data("1\tx\n"), DONE, fail("no")], ""), ([query("SELECT 1")], "T D C ZI")],
    "notices come with their statement": [
        ([parse("DROP TABLE IF EXISTS nothing"), bind(), execute(), FLUSH], "1 2 N C"),
        ([SYNC], "ZI"),
    ],
    "a message of no known kind": [([message("y")], "E08P01 end")],
    "a Bind that ends too early": [
        ([parse("SELECT 1"), message("B", b"p\0\0\0"), FLUSH], "1 E08P01"),
        ([SYNC], "ZI"),
    ],
}

# PostgreSQL 15 closes the connection here: it cannot tell where the next message begins. Stoa can.
OF_STOA = {
    "another message in the middle of a COPY": [
        ([query("COPY m FROM STDIN")], "G"),
        ([data("1\tx\n"), query("SELECT 1")], "E08P01 ZI"),
        ([query("SELECT 1")], "T D C ZI"),
    ],
    "another message in the middle of a portal's COPY": [
        ([*COPY, FLUSH], "1 2 G"),
        ([parse("SELECT 1"), FLUSH], "E08P01"),
        ([SYNC], "ZI"),
    ],
}


class Client:
    """A connection that sends what it is told and names what comes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        parameters = b"".join(map(text, ["user", "stoa", "database", "stoa", "client_min_messages", "notice"]))
        body = struct.pack("!i", 3 << 16) + parameters + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        while not self.next().startswith("Z"):
            pass

    def send(self, messages):
        self.socket.sendall(b"".join(messages))

    def exactly(self, length):
        found = b""
        while len(found) < length:
            part = self.socket.recv(length - len(found))
            if not part:
                raise EOFError
            found += part
        return found

    def next(self):
        try:
            kind = self.exactly(1).decode()
        except (EOFError, ConnectionResetError):
            return "end"
        body = self.exactly(struct.unpack("!i", self.exactly(4))[0] - 4)
        if kind == "E":
            return "E" + next(f[1:].decode() for f in body.split(b"\0") if f[:1] == b"C")
        return kind + body.decode() if kind == "Z" else kind

    def answers(self, count):
        """So many answers, or fewer where no more come; a state that changed is none."""
        found = []
        while len(found) < count:
            try:
                answer = self.next()
            except TimeoutError:
                return [*found, "nothing"]
            if answer != "S":
                found.append(answer)
        return found


def check(port, turns):
    client = Client(port)
    try:
        client.send([query("CREATE TABLE m (i INT NOT NULL, s TEXT)")])
        assert client.answers(2) == ["C", "ZI"]
        for number, (messages, expected) in enumerate(turns):
            client.send(messages)
            assert client.answers(len(expected.split())) == expected.split(), f"turn {number}"
        if not expected.endswith("end"):
            client.send([SYNC])
            assert client.answers(1) == ["ZI"], "an answer too many"
    finally:
        client.socket.close()
        client = Client(port)
        client.send([query("DROP TABLE m")])
        assert client.answers(2) == ["C", "ZI"]
        client.socket.close()


@pytest.mark.parametrize("case", [*CASES, *OF_STOA])
def test_stoa_answers_as_expected(case):
    check(int(os.environ["PGPORT"]), {**CASES, **OF_STOA}[case])


@pytest.mark.parametrize("case", CASES)
def test_postgresql_answers_as_expected(postgres, case):
    check(postgres, CASES[case])


def test_an_error_in_a_pipeline_is_told_before_the_sync(conn):
    import psycopg

    with conn.pipeline() as pipeline:
        cursor = conn.execute("SELECT 1")
        with pytest.raises(psycopg.errors.SyntaxError):
            conn.execute("SELEC 1")
            pipeline._conn.pgconn.send_flush_request()
            pipeline._conn.wait(pipeline._fetch_gen(flush=True))
            conn.execute("SELECT 2")
            pipeline.sync()
    assert conn.execute("SELECT 3").fetchone() == (3,)


def test_settings_are_read_and_shown_as_by_postgresql(conn, postgres):
    with psycopg.connect(port=postgres, autocommit=True) as real:
        for value in ["30s", "1.5min", "90000", "0", "1d", "500us", "-1", "5m", "abc", "25d"]:
            answers = []
            for one in (conn, real):
                try:
                    one.execute(f"SET statement_timeout = '{value}'")
                    answers.append(one.execute("SHOW statement_timeout").fetchone())
                except psycopg.Error as error:
                    answers.append((error.sqlstate, error.diag.message_primary))
                one.execute("RESET statement_timeout")
            assert answers[0] == answers[1], value
