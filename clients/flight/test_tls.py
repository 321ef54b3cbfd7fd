"""Encrypted connections as ADBC, pyarrow and JDBC make them, with the certificates of docs/tls.md."""

import os
import pathlib
import re
import subprocess

import adbc_driver_manager
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from adbc_driver_flightsql import DatabaseOptions

from access_server import PASSWORD, SUPERUSER
from conftest import connect
from tls_server import PAGE, start_encrypted

CREDENTIALS = {"username": SUPERUSER, "password": PASSWORD}


def trusting(ca):
    return {**CREDENTIALS, DatabaseOptions.TLS_ROOT_CERTS.value: pathlib.Path(ca).read_text()}


def answer(uri, options):
    with connect(uri, db_kwargs=options) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM generate_series(1, 10)")
        return cursor.fetchall()


def test_adbc(encrypted):
    uri = f"localhost:{encrypted.flight_port}"
    assert answer(f"grpc+tls://{uri}", trusting(encrypted.ca)) == [(10,)]
    for scheme, ca in [("grpc+tls", encrypted.directory / "ann.crt"), ("grpc", encrypted.ca)]:
        with pytest.raises(adbc_driver_manager.Error):
            answer(f"{scheme}://{uri}", trusting(ca))


def test_much_goes_in_and_out(encrypted):
    uri = f"grpc+tls://localhost:{encrypted.flight_port}"
    rows = pa.table({"n": range(200000), "note": ["x" * 100] * 200000})
    with connect(uri, db_kwargs=trusting(encrypted.ca)) as connection, connection.cursor() as cursor:
        # The driver sends at most 16 MiB in one message.
        parts = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=20000))
        cursor.adbc_ingest("much", parts, mode="create")
        cursor.execute("SELECT n, note FROM much")
        assert cursor.fetch_arrow_table().num_rows == 200000
        cursor.execute("DROP TABLE much")


def test_pyarrow(encrypted):
    uri = f"grpc+tls://localhost:{encrypted.flight_port}"
    trusted = pathlib.Path(encrypted.ca).read_bytes()
    with flight.connect(uri, tls_root_certs=trusted) as client:
        assert client.authenticate_basic_token(SUPERUSER, PASSWORD)
    other = (encrypted.directory / "ann.crt").read_bytes()
    # Which of the two depends on how far the call had come.
    refused = (flight.FlightUnavailableError, flight.FlightInternalError)
    with pytest.raises(refused), flight.connect(uri, tls_root_certs=other) as client:
        client.authenticate_basic_token(SUPERUSER, PASSWORD)


def test_clients_need_certificates_where_the_server_asks_for_them(tmp_path):
    server = start_encrypted(tmp_path, "--tls-client-ca", str(tmp_path / "ca.crt"))
    uri = f"grpc+tls://localhost:{server.flight_port}"
    own = {
        DatabaseOptions.MTLS_CERT_CHAIN.value: (tmp_path / "ann.crt").read_text(),
        DatabaseOptions.MTLS_PRIVATE_KEY.value: (tmp_path / "ann.key").read_text(),
    }
    assert answer(uri, {**trusting(server.ca), **own}) == [(10,)]
    with pytest.raises(adbc_driver_manager.Error):
        answer(uri, trusting(server.ca))
    server.stop()


def test_jdbc(encrypted):
    here = pathlib.Path(__file__).parent
    jar = pathlib.Path(os.environ["STOA_TOOLS"], "flight", "flight-sql-jdbc.jar")
    url = f"jdbc:arrow-flight-sql://localhost:{encrypted.flight_port}"
    other = str(encrypted.directory / "ann.crt")
    done = subprocess.run(
        ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", str(jar),
         str(here / "FlightJdbcTls.java"), url, SUPERUSER, PASSWORD, encrypted.ca, other],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_says_what_works(encrypted, capsys, monkeypatch):
    monkeypatch.chdir(encrypted.directory)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    block = block.replace("reports.example.com:15003", f"localhost:{encrypted.flight_port}")
    block = block.replace('"ann"', repr(SUPERUSER)).replace('"pencil"', repr(PASSWORD))
    exec(compile(block, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == "[(7,)]\n"
