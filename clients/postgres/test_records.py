"""Values of ROW(…), as text and in binary, compared with a real PostgreSQL."""

import psycopg
import pytest

ROWS = [
    "row(1, 2)",
    "(1, 'a b'::text)",
    "row(NULL, ''::text, 'q\"\\(,'::text)",
    "row(row(1, 2.5), true, DATE '2020-01-01')",
    "row(TIMESTAMP '2020-01-01 10:00', 1::bigint, 1.5::double precision, uuid '00000000-0000-0000-0000-000000000001')",
]


@pytest.fixture
def oracle(postgres):
    with psycopg.connect(host="127.0.0.1", port=postgres, user="stoa", dbname="stoa", autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("row", ROWS)
def test_rows(conn, oracle, row, binary):
    answers = []
    for connection in (conn, oracle):
        with connection.cursor(binary=binary) as cursor:
            value = cursor.execute(f"SELECT {row} AS r").fetchone()
            answers.append((value, cursor.description[0].type_code))
    assert answers[0] == answers[1]
