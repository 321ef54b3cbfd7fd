"""Daemons that are one server: on a warehouse in a directory, with a catalog in a real PostgreSQL."""

import contextlib
import json
import os
import signal
import subprocess

import real_postgres

LIMIT = 60
SUPERUSER = "boss"
PASSWORD = "pencil"


class Daemon:
    """One of them, with more flags; `end` ends it in order."""

    def __init__(self, directory, catalog, name, *flags):
        command = [os.environ["STOA_BIN"], "server", "--warehouse", str(directory / "w"), "--catalog", catalog]
        command += ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "none", *flags]
        self.log = open(directory / f"{name}.log", "wb")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log)
        line = self.process.stdout.readline()
        assert line, (directory / f"{name}.log").read_text()
        said = json.loads(line)
        self.port, self.flight_port, self.http_port = (said[f"{name}_port"] for name in ("pg", "flight", "http"))

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(LIMIT)
        self.process.stdout.close()
        self.log.close()


@contextlib.contextmanager
def cluster(directory, count, *flags):
    """So many daemons with access control and the superuser `boss`."""
    with real_postgres.running() as port:
        catalog = f"postgres://stoa@127.0.0.1:{port}/stoa"
        sql = [os.environ["STOA_BIN"], "sql", "--warehouse", str(directory / "w"), "--catalog", catalog]
        role = f"CREATE ROLE {SUPERUSER} LOGIN SUPERUSER PASSWORD '{PASSWORD}'"
        subprocess.run([*sql, "--stop-on-error", "-c", role], check=True, stdin=subprocess.DEVNULL, capture_output=True)
        daemons = []
        try:
            for number in range(count):
                daemons.append(Daemon(directory, catalog, f"daemon{number}", "--access-control", *flags))
            yield daemons
        finally:
            for daemon in daemons:
                daemon.end()
