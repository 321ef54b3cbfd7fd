"""Connections to the server that scripts/test.sh started, and names that no other test has."""

import os
import uuid

import adbc_driver_flightsql.dbapi as flightsql
import pytest

PORT = int(os.environ["STOA_FLIGHT_PORT"])
URI = f"grpc://127.0.0.1:{PORT}"


def connect(uri=URI, **kwargs):
    return flightsql.connect(uri, autocommit=True, **kwargs)


@pytest.fixture
def conn():
    with connect() as connection:
        yield connection


@pytest.fixture
def cursor(conn):
    with conn.cursor() as cursor:
        yield cursor


@pytest.fixture
def name(cursor):
    """The name of a table that is not there yet, dropped afterwards."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    yield name
    cursor.execute(f"DROP TABLE IF EXISTS {name}")
