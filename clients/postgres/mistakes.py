"""Reads `mistakes.txt`, and runs a statement for its error."""

import pathlib
from typing import NamedTuple, Optional

import psycopg
from psycopg.pq._enums import DiagnosticField as Field

SETUP = (
    "DROP VIEW IF EXISTS v1", "DROP TABLE IF EXISTS people", "DROP TABLE IF EXISTS cities",
    "DROP TABLE IF EXISTS t1", "DROP TABLE IF EXISTS t9",
    "CREATE TABLE people (id bigint, name text NOT NULL, born date, height numeric(5, 2), city_id int, at timestamptz)",
    "CREATE TABLE cities (id int, name text, country text)",
    "INSERT INTO people VALUES (1, 'Anna', '1990-01-02', 1.70, 1, '2026-01-02 03:04:05+00'),"
    " (2, 'Bob', '1991-01-02', 1.80, 2, '2026-01-02 03:04:05+00')",
    "INSERT INTO cities VALUES (1, 'Bern', 'CH'), (2, 'Lyon', 'FR')",
)  # fmt: skip


class Mistake(NamedTuple):
    statement: str
    # SQLSTATE and position, as PostgreSQL gives them and as Stoa does.
    postgresql: tuple
    stoa: tuple
    # Why the codes differ.
    reason: str


class Answer(NamedTuple):
    code: str
    position: Optional[int]
    said: str


def mistakes():
    """All of them, in order: later ones need what earlier ones made."""
    for line in (pathlib.Path(__file__).parent / "mistakes.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        expected, statement = line.split(" | ", 1)
        one, _, other = expected.partition(" / ")
        *other, reason = (other.split() if len(other.split()) == 3 else [other or one, ""])
        yield Mistake(statement, answer(one), answer(" ".join(other)), reason)


def answer(text):
    code, position = text.split()
    return code, None if position == "-" else int(position)


def run(connection: psycopg.Connection, statement):
    """What a server says to a statement, sent as one simple query."""
    result = connection.pgconn.exec_(statement.encode())
    if result.status == psycopg.pq.ExecStatus.COPY_OUT:
        while connection.pgconn.get_copy_data(0)[0] > 0:
            pass
        result = connection.pgconn.get_result() or result
    field = lambda name: (result.error_field(name) or b"").decode()
    position = field(Field.STATEMENT_POSITION)
    parts = (Field.MESSAGE_PRIMARY, Field.MESSAGE_DETAIL, Field.MESSAGE_HINT)
    said = "\n".join(field(part) for part in parts)
    return Answer(field(Field.SQLSTATE) or "ok", int(position) if position else None, said)
