"""Three daemons with files and commit logs in S3, and nothing in common but that and PostgreSQL.

The ledger is the test's own: every number that a daemon acknowledged is shown by all, once.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from warehouse import StoaError, Warehouse

sys.path.append(str(Path(__file__).resolve().parents[1]))
import real_postgres  # noqa: E402

LIMIT = 60


@pytest.fixture
def database():
    if real_postgres.programs() is None:
        pytest.skip("there is no PostgreSQL")
    with real_postgres.running() as port:
        yield f"postgres://stoa@127.0.0.1:{port}/stoa"


class Daemons:
    """Daemons on one warehouse, each as if on a machine of its own: with a folder of its own."""

    def __init__(self, gateway, bucket, database, directory, *flags):
        self.gateway, self.bucket, self.database, self.directory = gateway, bucket, database, directory
        self.flags = flags
        self.all = []

    def start(self):
        directory = self.directory / f"machine{len(self.all)}"
        directory.mkdir()
        place = Warehouse(f"s3://{self.bucket}/tables", self.gateway.url, directory)
        place.catalog = self.database
        daemon = place.server("--commit-log", f"s3://{self.bucket}/logs", *self.flags)
        self.all.append(place)
        return daemon

    def end(self):
        for place in self.all:
            place.end()


@pytest.fixture
def daemons(gateway, bucket, database, tmp_path):
    all_of_them = Daemons(gateway, bucket, database, tmp_path)
    yield all_of_them
    all_of_them.end()


def ids(daemon):
    rows = [int(row["id"]) for row in daemon.sql("SELECT id FROM t ORDER BY id")]
    assert len(rows) == len(set(rows)), f"a row is there twice: {rows}"
    return set(rows)


def until(what, is_so):
    until_when = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < until_when, f"in vain: {what}"


def states(daemon):
    return sorted(row["state"] for row in daemon.sql("SELECT state FROM system.daemons"))


def logs(daemon):
    return int(daemon.sql("SELECT logs FROM system.cluster")[0]["logs"])


def test_logs_in_s3_are_taken_over(daemons, s3, bucket):
    one, two, three = (daemons.start() for _ in range(3))
    one.sql("CREATE TABLE t (id bigint, d text)")
    expected = set()
    for number in range(12):
        (one, two, three)[number % 3].sql(f"INSERT INTO t VALUES ({number}, 'x')")
        expected.add(number)
        for daemon in (one, two, three):
            assert ids(daemon) == expected
    two.sql("DELETE FROM t WHERE id < 3")
    expected -= {0, 1, 2}

    # Frozen: no lock holds its log, and the others take it over while it sleeps.
    two.sql("INSERT INTO t VALUES (100, 'x')")
    expected.add(100)
    two.process.send_signal(signal.SIGSTOP)
    one.sql("INSERT INTO t VALUES (101, 'x')")
    expected.add(101)
    until("its log is taken over", lambda: logs(one) == 2)
    for daemon in (one, three):
        assert ids(daemon) == expected
    fresh = one.sql("SELECT copied_rows FROM system.cluster")
    assert int(fresh[0]["copied_rows"]) == 0, "its rows are in files"

    # What it is sent while it sleeps, it must not acknowledge when it wakes.
    body = json.dumps({"sql": "INSERT INTO t VALUES (102, 'x')"})
    url = f"http://127.0.0.1:{two.said['http_port']}/v1/sql"
    curl = ["curl", "-s", "-m", "60", "-H", "Content-Type: application/json", "-d", body, url]
    sent = subprocess.Popen(curl, stdout=subprocess.PIPE, text=True)
    two.process.send_signal(signal.SIGCONT)
    answer, _ = sent.communicate(timeout=LIMIT)
    assert '"error"' in answer or not answer, answer
    assert two.process.wait(LIMIT) == 1
    for daemon in (one, three):
        assert ids(daemon) - {102} == expected

    # Killed: claims stay in the store, so that nobody writes behind the end of a log that was taken over.
    three.sql("INSERT INTO t VALUES (103, 'x')")
    expected.add(103)
    three.kill()
    until("its log is taken over", lambda: logs(one) == 1)
    assert ids(one) - {102} == expected
    names = [item["Key"] for item in s3.list_objects_v2(Bucket=bucket, Prefix="logs/")["Contents"]]
    assert len({name.split("/")[1] for name in names}) == 3, names

    # A new machine knows nothing but the catalog and the bucket.
    again = daemons.start()
    assert ids(again) - {102} == expected
    until("both are up", lambda: states(one).count("up") == 2)
    again.sql("INSERT INTO t VALUES (104, 'x')")
    expected.add(104)
    assert ids(one) - {102} == expected
    again.stop()
    one.stop()


def test_daemons_on_other_machines_need_a_log_that_all_reach(daemons, monkeypatch):
    """Daemons of one machine may have their logs on its disk."""
    first = daemons.start()
    place = daemons.all[0]
    second = place.server("--commit-log", str(place.directory / "log"))
    first.sql("CREATE TABLE t (id bigint, d text)")
    second.sql("INSERT INTO t VALUES (1, 'x')")
    assert ids(first) == {1}
    second.stop()
    with pytest.raises(StoaError):
        place.run("daemons", "drain", "0123")
    listed = place.run("daemons", "list")
    assert listed.count("up") == 1 and "dead" in listed


def test_make_cluster_starts_one():
    """What docs/cluster.md promises of `make cluster`."""
    if real_postgres.programs() is None:
        pytest.skip("there is no PostgreSQL")
    script = Path(__file__).resolve().parents[2] / "scripts" / "cluster.sh"
    # PostgreSQL's own user must reach it, which pytest's folders keep out.
    with tempfile.TemporaryDirectory(prefix="stoa-cluster-") as home:
        os.chmod(home, 0o711)
        environment = {**os.environ, "CLUSTER_EXIT": "1", "CLUSTER_DIR": f"{home}/cluster"}
        done = subprocess.run([script], env=environment, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "daemon 3 says 42" in done.stdout and done.stdout.count(" up ") == 3, done.stdout


def behind_a_proxy(daemons, proxy):
    """A daemon that reaches the store by a way of its own, and the port of that way."""
    way = proxy("--latency", "0ms")
    daemons.gateway, gateway = way, daemons.gateway
    daemon = daemons.start()
    daemons.gateway = gateway
    return daemon, way, int(way.url.rsplit(":", 1)[1])


def in_the_background(daemon, statement):
    body = json.dumps({"sql": statement})
    url = f"http://127.0.0.1:{daemon.said['http_port']}/v1/sql"
    curl = ["curl", "-s", "-m", str(LIMIT), "-H", "Content-Type: application/json", "-d", body, url]
    return subprocess.Popen(curl, stdout=subprocess.PIPE, text=True)


def test_small_writes_wait_for_a_store_that_comes_back(daemons, proxy):
    other = daemons.start()
    daemon, way, port = behind_a_proxy(daemons, proxy)
    other.sql("CREATE TABLE t (id bigint, d text)")
    daemon.sql("INSERT INTO t VALUES (1, 'x')")
    way.stop()
    waiting = in_the_background(daemon, "INSERT INTO t VALUES (2, 'x')")
    # Longer than one request is repeated: eight times, which takes a second or more.
    log = Path(daemon.log.name)
    until("the daemon tells that it waits", lambda: "appends wait for it" in log.read_text())
    # The others go on.
    other.sql("INSERT INTO t VALUES (3, 'x')")
    assert waiting.poll() is None and 3 in ids(other)
    proxy("--latency", "0ms", port=port)
    answer, _ = waiting.communicate(timeout=LIMIT)
    assert '"error"' not in answer and answer, answer
    for one in (daemon, other):
        assert ids(one) == {1, 2, 3}
    daemon.sql("INSERT INTO t VALUES (4, 'x')")
    assert ids(other) == {1, 2, 3, 4}
    daemon.stop()
    other.stop()


def test_a_daemon_whose_log_has_stopped_ends_when_the_store_is_back(daemons, proxy):
    daemons.flags = ("--log-store-wait-s", "1")
    other = daemons.start()
    daemon, way, port = behind_a_proxy(daemons, proxy)
    other.sql("CREATE TABLE t (id bigint, d text)")
    daemon.sql("INSERT INTO t VALUES (1, 'x')")
    way.stop()
    with pytest.raises(StoaError, match="08007"):
        daemon.sql("INSERT INTO t VALUES (2, 'x')")
    # Reports go on where they need no file, and nothing ends yet.
    assert ids(daemon) == {1}
    assert daemon.sql("SELECT is_stopped FROM system.log") == [{"is_stopped": True}]
    other.sql("INSERT INTO t VALUES (3, 'x')")
    assert daemon.process.poll() is None
    proxy("--latency", "0ms", port=port)
    assert daemon.process.wait(LIMIT) == 1
    said = Path(daemon.log.name).read_text()
    assert "the commit log of this daemon has stopped" in said and "start it again" in said
    until("its log is taken over", lambda: logs(other) == 1)
    assert ids(other) - {2} == {1, 3}
    again = daemons.start()
    again.sql("INSERT INTO t VALUES (4, 'x')")
    assert ids(other) - {2} == {1, 3, 4}
    again.stop()
    other.stop()
