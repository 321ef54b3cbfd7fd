"""Arrow streams that say what is not so: refused, without a byte of it in the table."""

import random
import struct

import pytest

import http2
import wire
from conftest import Victim, number

CONTENT = {"Content-Type": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    victim = Victim(tmp_path_factory.mktemp("server"))
    victim.sql("CREATE TABLE target (account bigint, day int, imps bigint)")
    yield victim
    victim.stop()


def stream(victim):
    """An honest stream, with one batch of 100 rows: what the server itself writes."""
    text = "SELECT * FROM visits ORDER BY imps LIMIT 100"
    status, body = wire.sql(victim.ports["http"], text, "arrow")
    assert status == 200
    return body


def parts(body):
    """Schema and batch: where their metadata begins and ends, and where their bodies end."""
    found, at = [], 0
    for _ in range(2):
        assert body[at : at + 4] == b"\xff\xff\xff\xff"
        (length,) = struct.unpack("<i", body[at + 4 : at + 8])
        found.append((at + 8, at + 8 + length))
        # A schema has no body.
        at += 8 + length
    (schema, batch), end = found, len(body) - 8 * body.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    return [(*schema, schema[1]), (*batch, end)]


def post(victim, body):
    return wire.ask(victim.ports["http"], "POST", "/v1/tables/public/target/rows", body, CONTENT)


def rows(victim):
    session = victim.session()
    try:
        return int(session.query("SELECT count(*) FROM target")[0][0])
    finally:
        session.close()


def refuses(victim, bodies):
    """Each is refused by name, and none of its rows is there."""
    before = rows(victim)
    for name, body in bodies:
        status, answer = post(victim, body)
        assert 400 <= status < 500, (name, answer)
        assert rows(victim) == before, name
    victim.is_well()


def test_an_honest_stream_is_taken(victim):
    before = rows(victim)
    status, body = post(victim, stream(victim))
    assert (status, rows(victim)) == (200, before + 100), body


def test_absurd_lengths_of_a_body_are_refused(victim):
    honest = stream(victim)
    start, end, body_end = parts(honest)[1]
    at = honest.index(struct.pack("<q", body_end - end), start, end)
    absurd = [2**62, 2**48, 2**40, 2**31, 2**30, -1, -(2**63)]
    refuses(victim, [(n, honest[:at] + struct.pack("<q", n) + honest[at + 8 :]) for n in absurd])


def test_absurd_lengths_of_a_header_are_refused(victim):
    honest = stream(victim)
    absurd = [2**31 - 1, 2**30, 100 << 20]
    places = [start for start, _, _ in parts(honest)]
    refuses(
        victim,
        [
            ((at, n), honest[: at - 4] + struct.pack("<i", n) + honest[at:])
            for at in places
            for n in absurd
        ],
    )


def test_rows_that_are_not_there_are_refused(victim):
    honest = stream(victim)
    start, end, _ = parts(honest)[1]
    rows_of = struct.pack("<q", 100)
    assert rows_of in honest[start:end]
    changed = [(n, honest[start:end].replace(rows_of, struct.pack("<q", n))) for n in (2**40, 2**62)]
    refuses(victim, [(n, honest[:start] + header + honest[end:]) for n, header in changed])


def test_damaged_streams_end_in_an_answer(victim):
    """Over HTTP and Flight; whatever the answer is, the server goes on."""
    honest = stream(victim)
    messages = [(honest[start:end], honest[end:stop]) for start, end, stop in parts(honest)]
    for seed in range(number("SEED", 1), number("SEED", 1) + number("STREAMS", 150)):
        rng = random.Random(seed)
        status, answer = post(victim, damage(rng, honest))
        assert status in range(200, 600), (seed, answer)
        header, body = messages[1]
        if rng.random() < 0.7:
            header = damage(rng, header)
        else:
            body = damage(rng, body)
        put(victim, [messages[0], (header, body)], seed)
    victim.is_well()


def put(victim, messages, seed):
    connection = http2.Connection(victim.ports["flight"])
    try:
        call = connection.open("DoPut")
        descriptor = http2.table_path("public", "target")
        for header, body in messages:
            connection.send(call, http2.grpc(http2.flight_data(header, body, descriptor)))
            descriptor = None
        connection.send(call, b"", end=True)
        connection.until_ended(call)
    except TimeoutError:
        pytest.fail(f"no answer to seed {seed}")
    finally:
        connection.close()


def damage(rng, data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(max(len(data) - 8, 1))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at : at + 8] = struct.pack("<q", rng.choice([-1, 0, 1, 2**31, 2**40, 2**62, -(2**63)]))
        elif kind == 2:
            data[at : at + 4] = struct.pack("<i", rng.choice([-1, 0, 7, 2**20, 2**31 - 1]))
        elif rng.random() < 0.2:
            del data[at : at + rng.randint(1, 64)]
    return bytes(data)
