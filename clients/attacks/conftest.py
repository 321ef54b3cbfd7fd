"""Servers to attack: with few descriptors, little memory, and a table to report on."""

import json
import os
import pathlib
import resource
import signal
import subprocess

import pytest

import http2
import wire

DESCRIPTORS = int(os.environ.get("STOA_ATTACK_DESCRIPTORS", 400))
MEMORY_LIMIT = 256 << 20
# What memory_limit does not count: buffers of connections, plans, the allocator's slack.
MEMORY_BESIDE = 256 << 20
SUPERUSER, PASSWORD = "admin", "it's: ä secret"

# The clients need a descriptor for each connection, too.
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

ROWS = ", ".join(f"({n % 10}, {20150101 + n % 28}, {n})" for n in range(500))
REPORT = "SELECT account, sum(imps) FROM visits WHERE account = 7 AND day BETWEEN 20150105 AND 20150120 GROUP BY account"
EXPECTED = sum(n for n in range(500) if n % 10 == 7 and 5 <= n % 28 + 1 <= 20)


class Victim:
    """A server on a warehouse of its own; `asks` whether clients must log in."""

    def __init__(self, directory, *flags, asks=False, descriptors=DESCRIPTORS):
        self.stoa, self.warehouse = os.environ["STOA_BIN"], str(directory / "warehouse")
        self.user = (SUPERUSER, PASSWORD) if asks else None
        self.alone(f"CREATE TABLE visits (account bigint, day int, imps bigint); INSERT INTO visits VALUES {ROWS}")
        if asks:
            password = PASSWORD.replace("'", "''")
            self.alone(f"CREATE ROLE {SUPERUSER} LOGIN SUPERUSER PASSWORD '{password}'")
            flags += ("--access-control",)
        self.log_file = directory / "server.log"
        self.log = open(self.log_file, "wb")
        limits = ["--memory-limit", str(MEMORY_LIMIT), "--cache-memory", "64MiB", "--fresh-memory", "64MiB"]
        limits += ["--shutdown-grace-s", "1"]
        ports = ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "none", "--num-executors", "2"]
        command = [self.stoa, "server", "--warehouse", self.warehouse, *ports, *limits, *flags]
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))  # noqa: E731
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, preexec_fn=few)
        line = self.process.stdout.readline()
        assert line, self.log_file.read_text()
        said = json.loads(line)
        self.ports = {name: said[f"{name}_port"] for name in ("pg", "http", "flight")}
        try:
            self.report()
            self.began_with = self.memory("VmHWM")
        except BaseException:
            self.process.kill()
            raise

    def alone(self, sql):
        command = [self.stoa, "sql", "--warehouse", self.warehouse, "--stop-on-error", "-c", sql]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr

    def fill(self, texts):
        """Statements that must succeed, one after another."""
        session = self.session()
        for text in texts.split(";\n"):
            session.query(text)
        session.close()

    def memory(self, what):
        """A line of /proc/PID/status, in bytes."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(what + ":"):
                return int(line.split()[1]) << 10
        raise AssertionError(f"there is no {what}: the server is dead")

    def session(self, **named):
        user, password = self.user or ("me", None)
        return wire.Postgres(self.ports["pg"], user, password, **named)

    def sql(self, text):
        """Rows of a statement over HTTP, which must succeed."""
        status, body = wire.sql(self.ports["http"], text, user=self.user)
        assert status == 200, body
        return body

    def report(self):
        """A report over each protocol is answered, and right."""
        session = self.session()
        try:
            assert session.query(REPORT) == [["7", str(EXPECTED)]]
        finally:
            session.close()
        assert str(EXPECTED) in json.dumps(self.sql(REPORT))
        headers = {}
        if self.user:
            text = wire.base64.b64encode(":".join(self.user).encode()).decode()
            headers["authorization"] = "Basic " + text
        assert http2.query(self.ports["flight"], REPORT, **headers) == 1

    def write(self):
        """A row goes into the log, and from there into a file."""
        self.sql("CREATE TABLE IF NOT EXISTS notes (id bigint)")
        self.sql("INSERT INTO notes VALUES (1)")
        self.sql("FLUSH TABLE notes")

    def is_well(self):
        """The server lives, answers, writes, and has neither run out of descriptors nor of bounds."""
        assert self.process.poll() is None, f"the server died: {self.tail()}"
        self.report()
        self.write()
        log = self.log_file.read_text(errors="replace")
        assert "Too many open files" not in log and "os error 24" not in log, self.tail()
        peak = self.memory("VmHWM")
        assert peak <= self.bound(), f"{peak >> 20} MiB at the peak, {self.began_with >> 20} MiB at the start"

    def bound(self):
        """Bytes of memory that it may have."""
        return self.began_with + MEMORY_LIMIT + MEMORY_BESIDE

    def tail(self):
        return self.log_file.read_text(errors="replace")[-4000:]

    def stop(self):
        alive = self.process.poll() is None
        self.process.send_signal(signal.SIGTERM) if alive else None
        try:
            status = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "no end"
        self.process.stdout.close()
        self.log.close()
        assert status == 0, f"the server ended with {status}: {self.tail()}"


@pytest.fixture
def server(tmp_path):
    """Starts servers for one test."""
    started = []

    def start(*flags, **named):
        directory = tmp_path / f"server{len(started)}"
        directory.mkdir()
        started.append(Victim(directory, *flags, **named))
        return started[-1]

    yield start
    for victim in started:
        victim.stop()


@pytest.fixture
def say(capsys):
    """Prints lines at once, so that long runs can be watched."""

    def print_now(text):
        with capsys.disabled():
            print(text, flush=True)

    return print_now


def number(name, default):
    """A size from the environment."""
    return int(os.environ.get(f"STOA_ATTACK_{name}", default))
