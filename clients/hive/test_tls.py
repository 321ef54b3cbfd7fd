"""Encrypted connections: JDBC over SASL and HTTP, PyHive over HTTPS, with the certificates of docs/tls.md."""

import os
import pathlib
import subprocess

import pytest
from access_server import PASSWORD, SUPERUSER
from conftest import connect, rows


def test_pyhive_over_https(encrypted):
    credentials = {"username": SUPERUSER, "password": PASSWORD}
    connection = connect(encrypted.hive_port, "http", scheme="https", **credentials)
    assert rows(connection.cursor(), "SELECT 1") == [(1,)]
    connection.close()
    for transport in ("http", "ldap", "nosasl"):
        with pytest.raises(Exception):
            connect(encrypted.hive_port, transport, **credentials)


def test_jdbc(encrypted):
    store = encrypted.directory / "trust.p12"
    if not store.exists():
        command = ["keytool", "-importcert", "-noprompt", "-alias", "stoa", "-file", encrypted.ca]
        command += ["-keystore", str(store), "-storepass", "secret", "-storetype", "PKCS12"]
        subprocess.run(command, check=True, capture_output=True)
    # Over HTTP, the driver sends no letters beyond ASCII.
    connection = connect(encrypted.hive_port, "http", scheme="https", username=SUPERUSER, password=PASSWORD)
    connection.cursor().execute("CREATE USER hive_tls PASSWORD 'pencil'")
    connection.close()
    here = pathlib.Path(__file__).parent
    trust = f";ssl=true;sslTrustStore={store};trustStorePassword=secret"
    for driver in sorted(pathlib.Path(os.environ["HIVE_TOOLS"]).glob("hive-jdbc-*-standalone.jar")):
        for more in ("", ";transportMode=http;httpPath=cliservice"):
            url = f"jdbc:hive2://localhost:{encrypted.hive_port}/default{trust}{more}"
            command = ["java", "-cp", str(driver), str(here / "HiveJdbcTls.java"), url, "hive_tls", "pencil"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            assert done.stdout == "encrypted\n", f"{driver.name} {more}: {done.stdout}{done.stderr}"
