"""A connection per test, and a table of its own for those that write; a server that asks who one is."""

import pathlib
import sys
import uuid

import psycopg
import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import real_postgres
from access_server import PASSWORD, SUPERUSER, guarded  # noqa: F401
from tls_server import encrypted  # noqa: F401


@pytest.fixture(scope="module")
def postgres():
    """The port of a real PostgreSQL to compare with."""
    if real_postgres.programs() is None:
        pytest.skip("no PostgreSQL server is installed (package postgresql)")
    with real_postgres.running() as port:
        yield port


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


@pytest.fixture
def log_in(guarded):
    """Connects as a role to the server with access control."""
    connections = []

    def connect(role, password, **more):
        options = {"port": guarded.pg_port, "user": role, "password": password, **more}
        connections.append(psycopg.connect(autocommit=True, **options))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.close()


@pytest.fixture
def admin(log_in):
    return log_in(SUPERUSER, PASSWORD)


@pytest.fixture
def role(admin):
    """Makes roles that log in with the password `pencil`; they go with the test, and their grants."""
    made = []

    def make(options="LOGIN PASSWORD 'pencil'"):
        name = f"r_{uuid.uuid4().hex[:12]}"
        admin.execute(f"CREATE ROLE {name} {options}")
        made.append(name)
        return name

    yield make
    for name in made:
        admin.execute(f"DROP ROLE IF EXISTS {name}")


@pytest.fixture
def visits(admin):
    """A table of four columns, of which `cost` is granted to nobody."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    admin.execute(
        f"CREATE TABLE {name} (account bigint, day date, clicks int, cost decimal(9, 2))"
        " PARTITIONED BY (month(day)) ORDER BY (account, day)"
    )
    rows = ", ".join(
        f"({n % 5}, DATE '2026-01-{1 + n % 9:02}', {n}, {n}.25)" for n in range(100)
    )
    admin.execute(f"INSERT INTO {name} VALUES {rows}")
    yield name
    admin.execute(f"DROP TABLE IF EXISTS {name}")
