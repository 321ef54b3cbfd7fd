"""A server with access control, for the suites that log in: `postgres` and `flight`.

A superuser is made in the warehouse before the server starts, as docs/access.md says.
"""

import json
import os
import signal
import subprocess

import pytest

SUPERUSER = "admin"
# With letters that text protocols may stumble over.
PASSWORD = "it's: ä secret"


class Server:
    """A server on a new warehouse in a directory, with more flags; `stop` ends it."""

    def __init__(self, directory, *flags):
        self.stoa = os.environ["STOA_BIN"]
        self.warehouse = str(directory / "warehouse")
        password = PASSWORD.replace("'", "''")
        self.alone(f"CREATE ROLE {SUPERUSER} LOGIN SUPERUSER PASSWORD '{password}'")
        ports = ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "0"]
        command = [self.stoa, "server", "--warehouse", self.warehouse, "--access-control", *ports]
        command += flags
        self.log = open(directory / "server.log", "wb")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log)
        line = self.process.stdout.readline()
        assert line, (directory / "server.log").read_text()
        said = json.loads(line)
        self.pg_port, self.http_port, self.flight_port, self.hive_port = (
            said[f"{name}_port"] for name in ("pg", "http", "flight", "hive")
        )

    def alone(self, sql):
        """Runs a statement in a process of its own, which asks nobody who he is."""
        command = [self.stoa, "sql", "--warehouse", self.warehouse, "--stop-on-error", "-c", sql]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.process.stdout.close()
        self.log.close()
        assert status == 0, f"the server ended with {status}"


@pytest.fixture(scope="session")
def guarded(tmp_path_factory):
    """A server with access control; a suite's conftest takes it over by name."""
    server = Server(tmp_path_factory.mktemp("access"))
    yield server
    server.stop()
