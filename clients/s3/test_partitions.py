"""Three daemons on networks of their own, one of which is cut off: from PostgreSQL only, from the others only, from the
store only. What docs/cluster.md says of it, and by a ledger nothing lost and nothing doubled.

The machines are network namespaces; a cut drops packets. Without root, or without iproute2, the test is skipped.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

import networks
from stores import ACCESS_KEY, SECRET_KEY, Gateway

sys.path.append(str(Path(__file__).resolve().parents[1]))
import real_postgres  # noqa: E402

LIMIT = 90
# Seconds after which the others go on, whatever happened: the lease is 5 s long.
GO_ON = 15
NAMES = ["one", "two", "three"]


class Refused(Exception):
    """What a daemon answered instead of rows."""


class Daemon:
    """A daemon on a machine; `host` is what the machine calls itself, if not as the one that the tests run on."""

    def __init__(self, place, name, flags=(), host=None):
        self.address = place.network.machines[name][1]
        directory = place.directory / name
        directory.mkdir(exist_ok=True)
        command = [*place.network.on(name)]
        if host:
            naming = 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"'
            command += ["unshare", "--uts", "sh", "-c", naming, host]
        command += [os.environ["STOA_BIN"], "server", *flags]
        command += ["--warehouse", f"s3://{place.bucket}/tables", "--commit-log", f"s3://{place.bucket}/logs"]
        command += ["--catalog", place.catalog, "--listen", self.address, "--insecure-listen"]
        command += ["--advertise", self.address, "--s3-allow-http", "--http-port", "0", "--pg-port", "0", "--flight-port", "0"]
        command += ["--hive-port", "none"]
        environment = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_ENDPOINT_URL_S3": place.gateway.url,
        }
        self.log = open(directory / "server.log", "ab")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, env=environment, cwd=directory
        )
        line = self.process.stdout.readline()
        assert line, (directory / "server.log").read_text()
        self.port = json.loads(line)["http_port"]
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, path, data=None, limit=30):
        request = urllib.request.Request(
            f"http://{self.address}:{self.port}{path}", data=data, headers={"Content-Type": "application/json"}
        )
        try:
            with self.opener.open(request, timeout=limit) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def sql(self, sql, limit=30):
        status, text = self.ask("/v1/sql", json.dumps({"sql": sql}).encode(), limit)
        body = json.loads(text)
        if status != 200 or "error" in body:
            raise Refused(text)
        return body.get("rows", [])

    def ids(self):
        rows = [int(row[0]) for row in self.sql("SELECT id FROM t")]
        assert len(rows) == len(set(rows)), f"rows are there twice: {sorted(rows)}"
        return set(rows)

    def states(self):
        return sorted(row[0] for row in self.sql("SELECT state FROM system.daemons"))

    def end(self, how=signal.SIGKILL):
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(LIMIT)
        self.process.stdout.close()
        self.log.close()


class Ledger:
    """What was acknowledged, and what may or may not have been done."""

    def __init__(self):
        self.lock = threading.Lock()
        self.next, self.acknowledged, self.unknown = 0, {}, set()
        self.wrong, self.ending, self.threads = [], False, []

    def write_to(self, name, daemon):
        self.threads.append(threading.Thread(target=self.write, args=(name, daemon)))
        self.threads[-1].start()

    def write(self, name, daemon):
        while not self.ending and daemon.process.poll() is None:
            with self.lock:
                number, before = self.next, set(self.acknowledged)
                self.next += 1
                # Until it is known, it may be there.
                self.unknown.add(number)
            try:
                daemon.sql(f"INSERT INTO t VALUES ({number}, '{name}')", limit=GO_ON)
                with self.lock:
                    self.unknown.discard(number)
                    self.acknowledged[number] = (name, time.monotonic())
                # What was acknowledged anywhere before is shown here, or there is no answer.
                missing = before - daemon.ids()
                if missing:
                    self.wrong.append(f"{name} does not show {sorted(missing)}")
            except (Refused, OSError) as error:
                if "twice" in str(error):
                    self.wrong.append(f"{name}: {error}")
                time.sleep(0.2)
            except AssertionError as error:
                self.wrong.append(f"{name}: {error}")

    def since(self, moment, *names):
        """How many were acknowledged by these daemons since a moment."""
        with self.lock:
            return sum(name in names and at > moment for name, at in self.acknowledged.values())

    def stop(self):
        self.ending = True
        for thread in self.threads:
            thread.join(LIMIT)
        assert not self.wrong, self.wrong[:5]

    def check(self, daemon):
        shown = daemon.ids()
        assert set(self.acknowledged) <= shown, f"lost: {sorted(set(self.acknowledged) - shown)}"
        assert shown <= set(self.acknowledged) | self.unknown, "rows that nobody wrote"


class Place:
    """A network with PostgreSQL, a store, and three daemons."""

    def __init__(self, network, directory, gateway, catalog):
        self.network, self.directory, self.gateway, self.catalog = network, directory, gateway, catalog
        self.bucket = f"stoa-{uuid.uuid4().hex[:12]}"
        s3 = boto3.client(
            "s3", endpoint_url=gateway.url, aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1", config=Config(s3={"addressing_style": "path"}, proxies={}),
        )  # fmt: skip
        s3.create_bucket(Bucket=self.bucket)
        self.daemons = {}

    def start(self, name, flags=(), host=None):
        self.daemons[name] = Daemon(self, name, flags, host)
        return self.daemons[name]


@pytest.fixture
def place(tmp_path):
    if reason := networks.why_not():
        pytest.skip(reason)
    if real_postgres.programs() is None:
        pytest.skip("no PostgreSQL server is installed (package postgresql)")
    network = networks.Network()
    try:
        database, store = network.machine("database"), network.machine("store")
        for name in NAMES:
            network.machine(name)
        files = tmp_path / "store"
        files.mkdir()
        gateway = Gateway(os.environ["STOA_S3_GATEWAY"], files, network.on("store"), store)
        try:
            with real_postgres.running(network.on("database"), database) as port:
                place = Place(network, tmp_path, gateway, f"postgres://stoa@{database}:{port}/stoa")
                try:
                    yield place
                finally:
                    for daemon in place.daemons.values():
                        daemon.end()
        finally:
            gateway.stop()
    finally:
        network.end()


def until(what, is_so):
    until_when = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < until_when, f"in vain: {what}"
        time.sleep(0.05)


@pytest.mark.parametrize("cut_from", ["database", "peers", "store"])
def test_one_daemon_is_cut_off(place, cut_from):
    one, two, three = (place.start(name) for name in NAMES)
    until("all are up", lambda: all(daemon.states() == ["up"] * 3 for daemon in (one, two, three)))
    one.sql("CREATE TABLE t (id bigint, by text)")
    ledger = Ledger()
    for name, daemon in place.daemons.items():
        ledger.write_to(name, daemon)
    until("all write", lambda: all(ledger.since(0, name) > 5 for name in NAMES))

    others = {"database": ["database"], "store": ["store"], "peers": ["one", "three"]}[cut_from]
    for other in others:
        place.network.cut("two", other)
    cut = time.monotonic()
    until("the others go on", lambda: ledger.since(cut + GO_ON, "one", "three") > 20)

    if cut_from == "store":
        # It is a member all the same; only its own log cannot be written, and its small writes wait.
        assert one.states() == ["up"] * 3
        assert ledger.since(cut + 5, "two") == 0
    else:
        until("it is declared dead", lambda: "dead" in one.states())
        assert ledger.since(cut + GO_ON, "two") == 0
    if cut_from == "peers":
        # It reads in the database that it is dead.
        assert two.process.wait(LIMIT) == 1
    for other in others:
        place.network.heal("two", other)
    if cut_from == "database":
        assert two.process.wait(LIMIT) == 1
    if cut_from == "store":
        healed = time.monotonic()
        until("it writes again", lambda: ledger.since(healed, "two") > 5)
    ledger.stop()
    until("the others show all", lambda: all(daemon.ids() >= set(ledger.acknowledged) for daemon in (one, three)))
    for daemon in (one, three):
        ledger.check(daemon)

    # It comes back, with all rows.
    place.daemons["two"].end()
    again = place.start("two")
    until("it is up", lambda: one.states().count("up") == 3)
    for daemon in (one, again, three):
        ledger.check(daemon)
        number = ledger.next
        ledger.next += 1
        daemon.sql(f"INSERT INTO t VALUES ({number}, 'after')")
        ledger.acknowledged[number] = ("after", time.monotonic())
        for shown_by in (one, again, three):
            ledger.check(shown_by)
