"""A server as a child process."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sysconfig
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any

# Lines of the server's log that are kept for errors.
_LOG_LINES_MAX = 50


class StoaError(RuntimeError):
    """What Stoa refused, with its message, detail and hint. `sqlstate` is PostgreSQL's code, if there is one."""

    def __init__(self, message: str, sqlstate: str | None = None):
        super().__init__(message)
        self.sqlstate = sqlstate


def binary() -> str:
    """The path of the binary: of this package, or else the `stoa` on the PATH.

    Raises `StoaError` if there is none. The environment variable STOA_BIN names another one.
    """
    here = pathlib.Path(sysconfig.get_path("scripts")) / "stoa"
    user = pathlib.Path(sysconfig.get_path("scripts", "posix_user")) / "stoa"
    named = os.environ.get("STOA_BIN")
    for candidate in (named, here, user, shutil.which("stoa")):
        if candidate and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return str(candidate)
    raise StoaError("the program stoa is not installed here; install it with: pip install stoa-server")


class Server:
    """A running server.

    `warehouse`: a directory, which is created if it does not exist, or a URL such as s3://bucket/path; without one,
    the data is in a temporary directory that is removed at the end.
    `settings`: settings of the server by name, as in docs/configuration.md: `memory_limit="1GiB"`,
    `access_control=True`. Ports are free ones unless they are given here.
    `timeout_s`: how many seconds the server may take to start, and to stop.

    Raises `StoaError` with the server's own words if it does not start. Use it as a context manager, or call
    `stop()`. It is safe to use from several threads.
    """

    def __init__(self, warehouse: str | os.PathLike[str] | None = None, *, timeout_s: float = 60, **settings: Any):
        self._binary = binary()
        self._timeout_s = timeout_s
        self._temporary = None
        if warehouse is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="stoa-", ignore_cleanup_errors=True)
            warehouse = self._temporary.name
        #: Where the tables are: a path or URL, as it was given.
        self.warehouse = os.fspath(warehouse)
        ports = dict.fromkeys(("http_port", "pg_port", "flight_port", "hive_port"), 0)
        # Where the tables are is for `stoa load`, too.
        self._places = {"warehouse": self.warehouse}
        self._places |= {name: value for name, value in settings.items() if name == "catalog" or name.startswith("s3_")}
        self._log: list[str] = []
        self._process = subprocess.Popen(
            [self._binary, "server", "--stop-with-stdin", *_flags({"warehouse": self.warehouse, **ports, **settings})],
            # The server ends when this pipe does; the kernel closes it even if Python is killed.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            # Ctrl-C in a notebook or terminal interrupts Python, not the server.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read_log, name="stoa-log", daemon=True)
        self._reader.start()
        try:
            listening = self._listening()
        except BaseException:
            self._kill()
            raise
        #: Ports on 127.0.0.1. `hive_port` is None if HiveServer2 is off.
        self.http_port: int = listening["http_port"]
        self.pg_port: int = listening["pg_port"]
        self.flight_port: int = listening["flight_port"]
        self.hive_port: int | None = listening["hive_port"]
        #: The version of the server, such as `0.1.0`.
        self.version: str = listening["version"]
        #: The process id of the server.
        self.pid: int = listening["pid"]
        self._scheme = "https" if listening["tls"] else "http"

    @property
    def dsn(self) -> str:
        """For PostgreSQL clients: psycopg, SQLAlchemy, pandas, DuckDB."""
        return f"postgresql://stoa@127.0.0.1:{self.pg_port}/stoa"

    @property
    def http_url(self) -> str:
        """The console, and the API of docs/openapi.yaml."""
        return f"{self._scheme}://127.0.0.1:{self.http_port}"

    @property
    def flight_uri(self) -> str:
        """For ADBC and other Arrow Flight SQL clients."""
        return f"{'grpc+tls' if self._scheme == 'https' else 'grpc'}://127.0.0.1:{self.flight_port}"

    @property
    def hive_url(self) -> str | None:
        """For beeline and other JDBC clients of Hive; None if HiveServer2 is off."""
        return None if self.hive_port is None else f"jdbc:hive2://127.0.0.1:{self.hive_port}/default"

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """The newest lines of the server's log."""
        return "".join(self._log)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Runs one statement and returns its rows: column name to value, as JSON has them.

        Dates and decimals are texts. Use a PostgreSQL client on `dsn`, or ADBC on `flight_uri`, for typed values and
        large results. A statement without rows returns an empty list. Raises `StoaError` if the server refuses it.
        """
        request = urllib.request.Request(
            f"{self.http_url}/v1/sql?format=ndjson", data=sql.encode(), headers={"Content-Type": "text/plain"}
        )
        try:
            with urllib.request.urlopen(request) as answer:
                body = answer.read().decode()
                is_rows = "ndjson" in answer.headers.get("Content-Type", "")
        except urllib.error.HTTPError as error:
            raise _problem(error.read()) from None
        except urllib.error.URLError as error:
            raise StoaError(f"the server at {self.http_url} does not answer: {error.reason}\n{self.log}") from error
        return [json.loads(line) for line in body.splitlines()] if is_rows else []

    def load(
        self, files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], into: str, **options: Any
    ) -> None:
        """Loads files (CSV, NDJSON, Parquet, ORC, Arrow, …) into a table, in one commit; creates it if need be.

        `options` are those of `stoa load --help`: `order_by="account, day"`, `partition_by="month(day)"`,
        `null_text="-"`, `create=False`. Raises `StoaError` with file, line and column if something does not fit; then
        nothing is loaded.
        """
        files = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        options = {"create": True, **options, **self._places, "into": into}
        command = [self._binary, "load", "--quiet", *_flags(options), "--", *map(os.fspath, files)]
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=_environment(), check=False
        )
        if ended.returncode:
            sqlstate = next((line[6:] for line in ended.stderr.splitlines() if line.startswith("code: ")), None)
            raise StoaError(ended.stderr.strip(), sqlstate)

    def stop(self) -> None:
        """Stops the server in order: running statements finish, rows that were acknowledged are kept.

        Does nothing if it has stopped already. Raises `StoaError` if it ended with an error.
        """
        if self._process.stdin and not self._process.stdin.closed:
            # It may be gone already.
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            code = self._process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            self._kill()
            raise StoaError(f"the server did not stop within {self._timeout_s} seconds\n{self.log}") from None
        self._reader.join(5)
        self._clean()
        if code:
            raise StoaError(f"the server ended with exit code {code}\n{self.log}")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = f"on {self.http_url}" if self.is_running else "stopped"
        return f"<stoa.Server of {self.warehouse} {state}>"

    def _listening(self) -> dict[str, Any]:
        """The line that the server prints when all ports take connections."""
        watch = threading.Timer(self._timeout_s, self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            self._process.wait()
            # Its last words say why.
            self._reader.join(5)
            raise StoaError(f"the server did not start (exit code {self._process.returncode})\n{self.log}".strip())
        return json.loads(line)

    def _read_log(self) -> None:
        for line in self._process.stderr:
            self._log.append(line.decode(errors="replace"))
            del self._log[:-_LOG_LINES_MAX]

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._clean()

    def _clean(self) -> None:
        if self._temporary:
            self._temporary.cleanup()
            self._temporary = None


def _environment() -> dict[str, str]:
    """The environment without this package's own variable, which is no setting."""
    return {name: value for name, value in os.environ.items() if name != "STOA_BIN"}


def _flags(settings: Mapping[str, Any]) -> list[str]:
    """`{"pg_port": 0, "access_control": True}` as flags."""
    flags = []
    for name, value in settings.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not False and value is not None:
            flags.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return flags


def _problem(body: bytes) -> StoaError:
    """The error in an answer of the HTTP API."""
    try:
        error = json.loads(body)["error"]
        lines = [error["message"], *(f"{name}: {error[name]}" for name in ("detail", "hint") if error.get(name))]
        return StoaError("\n".join(lines), error.get("code"))
    except (ValueError, KeyError, TypeError):
        return StoaError(body.decode(errors="replace"))
