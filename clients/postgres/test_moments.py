"""Dates, times and intervals as texts, in and out, compared with a real PostgreSQL: IntervalStyle, and parameters."""

import psycopg
import pytest
from psycopg import sql

STYLES = ["postgres", "postgres_verbose", "sql_standard", "iso_8601"]

INTERVALS = ["1 year 2 mons 3 days 04:05:06.7", "-1 day", "0", "1 day -2 hours", "-1-2", "-00:00:00.5", "25 months", "100 hours"]

# Typed parameters as texts; what is not read is refused by both.
PARAMETERS = [
    ("date", "1999-01-08"),
    ("date", "8 Jan 99"),
    ("date", "1/8/1999"),
    ("date", "0044-03-15 BC"),
    ("date", "J2451187"),
    ("date", "1999-02-30"),
    ("date", "soon"),
    ("date", "2024-02-29 12:00:00+09"),
    ("timestamp", "1999-01-08T04:05:06.789"),
    ("timestamp", "January 8 04:05:06 1999"),
    ("timestamp", "1999-01-08 25:00"),
    ("timestamptz", "2020-07-01 10:00 CET"),
    ("timestamptz", "2020-07-01 10:00 Europe/Berlin"),
    ("timestamptz", "2020-07-01 10:00+05:30"),
    # By the session's clock, which is set back at this time, or forward.
    ("timestamptz", "2024-10-27 02:30"),
    ("timestamptz", "2024-03-31 02:30"),
    ("time", "04:05 PM"),
    ("time", "24:00:01"),
    ("interval", "1 year 2 mons 3 days 04:05:06.7"),
    ("interval", "P1Y2M3DT4H5M6.7S"),
    ("interval", "1-2"),
    ("interval", "a while"),
]


@pytest.fixture
def oracle(postgres):
    with psycopg.connect(host="127.0.0.1", port=postgres, user="stoa", dbname="stoa", autocommit=True) as connection:
        yield connection


def answer(connection, statement, parameters=(), types=()):
    """The text of the only value, or the class of the error."""
    texts = [text.encode() for text in parameters]
    result = connection.pgconn.exec_params(statement.encode(), texts, param_types=list(types))
    error = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    return error if error else [result.get_value(0, column) for column in range(result.nfields)]


@pytest.mark.parametrize("style", STYLES)
def test_interval_styles(conn, oracle, style):
    values = ", ".join(f"interval '{text}', (interval '{text}')::text" for text in INTERVALS)
    answers = []
    for connection in (conn, oracle):
        connection.execute(sql.SQL("SET intervalstyle = {}").format(sql.Identifier(style)))
        answers.append(answer(connection, f"SELECT {values}, array[interval '1 mon', interval '-2 days']"))
        connection.execute("RESET intervalstyle")
    assert answers[0] == answers[1]


def test_the_style_of_the_start():
    """As Rails and others send it."""
    with psycopg.connect(options="-c intervalstyle=iso_8601", autocommit=True) as connection:
        assert answer(connection, "SELECT interval '1 day', (interval '1 day')::text") == [b"P1D", b"P1D"]
        assert connection.info.parameter_status("IntervalStyle") == "iso_8601"


def test_a_prepared_statement_has_the_style_that_is_set(conn, oracle):
    answers = []
    for connection in (conn, oracle):
        connection.execute("PREPARE day AS SELECT (interval '1 day 2 hours')::text")
        ran = [connection.execute("EXECUTE day").fetchone()]
        connection.execute("SET intervalstyle = iso_8601")
        ran.append(connection.execute("EXECUTE day").fetchone())
        connection.execute("RESET intervalstyle; DEALLOCATE day")
        answers.append(ran)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("of, text", PARAMETERS)
def test_parameters(conn, oracle, of, text):
    oid = psycopg.adapters.types[of].oid
    answers = []
    for connection in (conn, oracle):
        connection.execute("SET timezone = 'Europe/Berlin'")
        answers.append(answer(connection, "SELECT $1", [text], [oid]))
        connection.execute("RESET timezone")
    stoa, postgres = answers
    if isinstance(postgres, bytes):
        assert isinstance(stoa, bytes) and stoa[:2] == postgres[:2], answers
    else:
        assert stoa == postgres
