"""Typical mistakes: each has PostgreSQL's SQLSTATE and position, and is told without words of the engine."""

import re

import mistakes
import psycopg
import pytest

# Names of types and errors in the engine below, and of its syntax tree.
ENGINE = re.compile(
    r"DataFusion|Utf8|Int64|Int32|Float64|Date32|Decimal128|Boolean\(|Timestamp\(|wildcard|[Ss]chema error"
    r"|Arrow|logical plan|physical|Ident \{|Span\(|quote_style|EOF|Signature|Candidate|column1"
)
ALL = list(mistakes.mistakes())


def prepared(port=None):
    options = {"port": port, "user": "stoa", "dbname": "stoa"} if port else {}
    connection = psycopg.connect(autocommit=True, **options)
    for statement in mistakes.SETUP:
        connection.execute(statement)
    return connection


@pytest.fixture(scope="module")
def answers():
    with prepared() as connection:
        yield {mistake.statement: mistakes.run(connection, mistake.statement) for mistake in ALL}
        for table in ("people", "cities"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")


def test_there_are_many():
    assert len({mistake.statement for mistake in ALL}) == len(ALL) > 200


def test_other_codes_have_a_reason():
    for mistake in ALL:
        differs = mistake.postgresql[0] != mistake.stoa[0]
        assert differs == bool(mistake.reason), mistake.statement
        assert mistake.reason in ("", "class", "casts", "days", "more"), mistake.statement


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.statement[:70])
def test_a_mistake_is_told(answers, mistake):
    answer = answers[mistake.statement]
    assert (answer.code, answer.position) == mistake.stoa, answer.said
    assert not ENGINE.search(answer.said.replace(mistake.statement, "")), answer.said


def test_the_list_is_postgresqls(postgres):
    with prepared(postgres) as connection:
        for mistake in ALL:
            answer = mistakes.run(connection, mistake.statement)
            assert (answer.code, answer.position) == mistake.postgresql, mistake.statement
