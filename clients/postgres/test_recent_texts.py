"""Texts that come again and again, between settings that change what they mean, compared with a real PostgreSQL."""

import random

import psycopg
import pytest

TEXTS = [
    "SELECT 1",
    "SELECT 1, 'a' AS x, NULL",
    "SELECT TIMESTAMP WITH TIME ZONE '2026-01-31 12:00:00+00'",
    "SELECT '2026-01-31 12:00:00'::timestamptz::text",
    "SELECT current_setting('TimeZone')",
    "SELECT current_schema()",
    "SELECT current_setting('application_name')",
    "SELECT DATE '2026-01-31', date '2026-01-31'::text",
    "SELECT INTERVAL '90 minutes'",
    "SELECT 'x' || current_setting('search_path')",
    "SELECT 1 / 0",
    "SELECT count(*) FROM changing",
    "SELECT * FROM changing",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT nothing_of_that_name",
    "SELECT (SELECT max(id) FROM changing)",
]
SETTINGS = [
    "SET TimeZone = 'Asia/Tokyo'",
    "SET TimeZone = 'UTC'",
    "SET search_path = public",
    "SET search_path = other",
    "SET application_name = 'one'",
    "SET application_name = 'two'",
    "SET intervalstyle = 'iso_8601'",
    "RESET intervalstyle",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "INSERT INTO public.changing (id) VALUES (1)",
    "ALTER TABLE public.changing ADD COLUMN {column} int",
    "CREATE TABLE IF NOT EXISTS other.changing (id int, note text)",
    "DROP TABLE IF EXISTS other.changing",
    "DISCARD ALL",
]


@pytest.fixture
def sides(postgres):
    with psycopg.connect(host="127.0.0.1", port=postgres, user="stoa", dbname="stoa", options="-c timezone=UTC -c search_path=public", autocommit=True) as oracle:
        with psycopg.connect(autocommit=True) as conn:
            begin = "DROP TABLE IF EXISTS public.changing; DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other; CREATE TABLE public.changing (id int)"
            for side in (conn, oracle):
                for statement in begin.split("; "):
                    side.execute(statement)
            yield conn, oracle
            conn.execute("ROLLBACK")
            for statement in begin.split("; ")[:2]:
                conn.execute(statement)


def told(side, text):
    """What the simple protocol gives for a text: names and values as text, or the code of its error."""
    result = side.pgconn.exec_(text.encode())
    if result.error_field(psycopg.pq.DiagnosticField.SQLSTATE):
        return result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    names = [result.fname(column) for column in range(result.nfields)]
    return names, [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]


@pytest.mark.parametrize("seed", range(4))
def test_texts_mean_what_they_mean_now(sides, seed):
    rng, in_block = random.Random(seed), False
    for step in range(300):
        text = rng.choice(TEXTS) if rng.random() < 0.7 else rng.choice(SETTINGS).format(column=f"c{step}")
        # Statements that define are not rolled back by Stoa, and BEGIN within a block is a warning.
        if in_block and text.split()[0] in ("ALTER", "CREATE", "DROP", "INSERT", "DISCARD", "SET", "RESET", "BEGIN"):
            continue
        answers = [told(side, text) for side in sides]
        assert answers[0] == answers[1], f"step {step}: {text}"
        in_block = {"BEGIN": True, "COMMIT": False, "ROLLBACK": False}.get(text, in_block)
