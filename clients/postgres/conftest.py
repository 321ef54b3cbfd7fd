"""A connection per test, and a table of its own for those that write."""

import uuid

import psycopg
import pytest


@pytest.fixture
def conn():
    with psycopg.connect(autocommit=True) as connection:
        yield connection


@pytest.fixture
def table(conn):
    """Makes a table with the columns given and drops it afterwards."""
    made = []

    def make(columns):
        name = f"t_{uuid.uuid4().hex[:12]}"
        conn.execute(f"CREATE TABLE {name} ({columns})")
        made.append(name)
        return name

    yield make
    for name in made:
        conn.execute(f"DROP TABLE IF EXISTS {name}")
