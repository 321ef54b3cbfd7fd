"""Connections to the server that scripts/test.sh started, and names that no other test has; a server that
asks who one is."""

import os
import pathlib
import sys
import uuid

import adbc_driver_flightsql.dbapi as flightsql
import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from access_server import PASSWORD, SUPERUSER, guarded  # noqa: F401
from tls_server import encrypted  # noqa: F401

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


@pytest.fixture
def log_in(guarded):
    """A cursor of a role on the server with access control."""
    opened = []

    def cursor(role, password):
        uri = f"grpc://127.0.0.1:{guarded.flight_port}"
        opened.append(connect(uri, db_kwargs={"username": role, "password": password}))
        opened.append(opened[-1].cursor())
        return opened[-1]

    yield cursor
    for one in reversed(opened):
        one.close()


@pytest.fixture
def admin(log_in):
    return log_in(SUPERUSER, PASSWORD)


@pytest.fixture
def role(admin):
    """Makes roles that log in with the password `pencil`; they go with the test, and their grants."""
    made = []

    def make():
        made.append(f"r_{uuid.uuid4().hex[:12]}")
        admin.execute(f"CREATE USER {made[-1]} PASSWORD 'pencil'")
        return made[-1]

    yield make
    for name in made:
        admin.execute(f"DROP ROLE IF EXISTS {name}")


@pytest.fixture
def visits(admin):
    """A table of two columns."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    admin.execute(f"CREATE TABLE {name} (account bigint, cost decimal(9, 2))")
    admin.execute(f"INSERT INTO {name} VALUES (1, 1.25), (2, 2.25), (3, 3.25)")
    yield name
    admin.execute(f"DROP TABLE IF EXISTS {name}")
