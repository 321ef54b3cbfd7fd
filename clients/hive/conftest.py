"""Connections to the server that scripts/test.sh started, and names that no other test has; a server that
asks who one is."""

import os
import pathlib
import sys
import uuid

import pytest
from pyhive import hive

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from access_server import PASSWORD, SUPERUSER, guarded  # noqa: F401
from tls_server import encrypted  # noqa: F401

PORT = int(os.environ["STOA_HIVE_PORT"])

# How PyHive can connect; the last one is HTTP.
TRANSPORTS = {
    "nosasl": {"auth": "NOSASL"},
    "none": {"auth": "NONE", "username": "me"},
    "ldap": {"auth": "LDAP", "username": "me", "password": "any"},
    "http": {"scheme": "http", "username": "me", "password": "any"},
}


def connect(port=PORT, transport="none", dialect="postgres", **more):
    """A connection in Stoa's SQL, which most tests here are written in; `test_hiveql.py` has HiveQL."""
    configuration = {"stoa.dialect": dialect, **more.pop("configuration", {})}
    return hive.connect("127.0.0.1", port, configuration=configuration, **{**TRANSPORTS[transport], **more})


def rows(cursor, sql, parameters=None):
    cursor.execute(sql, parameters)
    return cursor.fetchall()


@pytest.fixture
def cursor():
    connection = connect()
    yield connection.cursor()
    connection.close()


@pytest.fixture
def name(cursor):
    """The name of a table that is not there yet, dropped afterwards."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    yield name
    cursor.execute(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def admin(guarded):  # noqa: F811
    connection = connect(guarded.hive_port, "ldap", username=SUPERUSER, password=PASSWORD)
    yield connection.cursor()
    connection.close()
