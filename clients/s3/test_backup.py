"""Backups to S3 and from there: while rows come in, to another bucket, to a disk, and when the store or a copy is damaged."""

import json
import threading
import uuid

import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from stores import ACCESS_KEY, SECRET_KEY
from warehouse import StoaError, Warehouse

BATCH = 50


class Writer:
    """Inserts rows into `ledger` from a thread: batch n has the ids from n * BATCH on. What was acknowledged is known."""

    def __init__(self, server):
        self.server, self.batches, self.error = server, 0, None
        self.is_over = threading.Event()
        self.progress = threading.Condition()
        self.thread = threading.Thread(target=self.write)
        self.thread.start()

    def write(self):
        try:
            while not self.is_over.is_set():
                first = self.batches * BATCH
                values = ", ".join(f"({id}, {id * 7}, 'row {id}')" for id in range(first, first + BATCH))
                self.server.sql(f"INSERT INTO ledger VALUES {values}")
                with self.progress:
                    self.batches += 1
                    self.progress.notify_all()
        except Exception as error:  # The test's own thread tells of it.
            self.error = error
            with self.progress:
                self.progress.notify_all()

    def wait_for(self, batches):
        with self.progress:
            assert self.progress.wait_for(lambda: self.error or self.batches >= batches, 120), "no rows are written"
        assert self.error is None, self.error

    def stop(self):
        self.is_over.set()
        self.thread.join()
        assert self.error is None, self.error


def elsewhere(gateway, tmp_path, url):
    """An empty place to restore into, with a catalog of its own."""
    directory = tmp_path / uuid.uuid4().hex
    directory.mkdir()
    return Warehouse(url or f"file://{directory}/restored", gateway.url, directory)


def by_iceberg(restored, gateway):
    """Rows and sums of `ledger`, read without Stoa."""
    catalog = SqlCatalog("stoa", uri=f"sqlite:///{restored.catalog}", warehouse=restored.url, **{
        "s3.endpoint": gateway.url, "s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET_KEY, "s3.region": "us-east-1",
    })
    table = catalog.load_table("public.ledger").scan().to_arrow()
    return table.num_rows, pc.sum(table["id"]).as_py() or 0, pc.sum(table["v"]).as_py() or 0


def check_ledger(restored, gateway, at_least, at_most):
    """The restored rows are whole batches, all that were acknowledged before the backup, none that came after it."""
    [row] = restored.sql("SELECT count(*) AS n, sum(id) AS i, sum(v) AS v, count(DISTINCT id) AS d, max(id) AS m FROM ledger")
    rows = int(row["n"])
    assert rows % BATCH == 0 and at_least <= rows // BATCH <= at_most, (row, at_least, at_most)
    ids = range(rows)
    assert (int(row["d"]), int(row["i"]), int(row["v"]), int(row["m"])) == (rows, sum(ids), 7 * sum(ids), rows - 1)
    assert by_iceberg(restored, gateway) == (rows, sum(ids), 7 * sum(ids))
    assert restored.sql("SELECT n FROM counted") == [{"n": rows}], "a view"
    assert restored.sql("SELECT c FROM other.t ORDER BY c") == [{"c": "x"}, {"c": "ü"}]
    json.loads(restored.run("table", "check", "--json"))
    return rows


def begin(server):
    for statement in (
        "CREATE TABLE ledger (id bigint NOT NULL, v bigint, s text) ORDER BY (id)",
        "CREATE VIEW counted AS SELECT count(*) AS n FROM ledger",
        "CREATE SCHEMA other",
        "CREATE TABLE other.t (c text)",
        "INSERT INTO other.t VALUES ('x'), ('ü')",
    ):
        server.sql(statement)


@pytest.mark.parametrize("place", ["s3", "disk"])
def test_backups_under_load_are_restored_anywhere(place, gateway, s3, bucket, tmp_path):
    """A warehouse in S3 and one on a disk, to S3, and from there into another bucket and onto a disk."""
    source = elsewhere(gateway, tmp_path, f"s3://{bucket}/ware house" if place == "s3" else None)
    backups, target = f"s3://{bucket}/back ups/ü", f"stoa-{uuid.uuid4().hex[:12]}"
    s3.create_bucket(Bucket=target)
    server = source.server()
    try:
        begin(server)
        writer = Writer(server)
        url = f"http://127.0.0.1:{server.said['http_port']}"
        bounds, taken = [], []
        for _ in range(3):
            writer.wait_for(writer.batches + 4)
            before = writer.batches
            taken.append(json.loads(source.run("backup", backups, "--url", url, "--json")))
            bounds.append((before, writer.batches + 1))
        writer.stop()
    finally:
        source.end()
    assert [backup["relations"] for backup in taken] == [3, 3, 3]
    # What an earlier one has is not copied again.
    assert taken[0]["copied_files"] == taken[0]["files"]
    assert all(0 < later["copied_files"] < later["files"] for later in taken[1:]), taken
    assert json.loads(source.run("backup", backups, "--list", "--json"))["backups"] == [one["backup"] for one in taken]
    for one in taken:
        verified = json.loads(source.run("backup", backups, "--verify", "--id", one["backup"], "--json"))
        assert (verified["problems"], verified["files"]) == ([], one["files"])
    rows = []
    for (at_least, at_most), one, url in zip(bounds, taken, [None, f"s3://{target}/first", f"s3://{target}/a b/c"]):
        restored = elsewhere(gateway, tmp_path, url)
        said = json.loads(restored.run("restore", backups, "--id", one["backup"], "--json"))
        assert (said["backup"], said["tables"]) == (one["backup"], 2)
        rows.append(check_ledger(restored, gateway, at_least, at_most))
        # It can be written, like any other.
        restored.sql("INSERT INTO ledger VALUES (-1, -7, 'new')", "FLUSH TABLE ledger")
        assert restored.sql("SELECT count(*) AS n FROM ledger") == [{"n": rows[-1] + 1}]
        again = restored.attempt("restore", backups)
        assert again.returncode != 0 and "empty place" in again.stderr, again.stderr
    assert rows == sorted(rows) and rows[0] < rows[-1]


@pytest.fixture
def backed_up(gateway, bucket, tmp_path):
    """A warehouse on a disk with a backup in S3: the warehouse, where the backup is, and its rows."""
    source = elsewhere(gateway, tmp_path, None)
    server = source.server()
    begin(server)
    server.sql("INSERT INTO ledger SELECT value - 1, 7 * (value - 1), 'row ' || (value - 1) FROM generate_series(1, 1000) AS s(value)")
    server.stop()
    source.run("backup", f"s3://{bucket}/b")
    return source, f"s3://{bucket}/b"


def test_a_damaged_copy_is_found_and_not_restored(backed_up, gateway, s3, bucket, tmp_path):
    source, backups = backed_up
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket, Prefix="b/files/")["Contents"]]
    orc = next(key for key in keys if "ledger" in key and key.endswith(".orc"))
    whole = s3.get_object(Bucket=bucket, Key=orc)["Body"].read()
    s3.put_object(Bucket=bucket, Key=orc, Body=whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    for problem, change in (("CRC-32C", None), ("bytes instead of", whole[:-1]), ("is missing", b"")):
        if change:
            s3.put_object(Bucket=bucket, Key=orc, Body=change)
        elif change == b"":
            s3.delete_object(Bucket=bucket, Key=orc)
        verified = source.attempt("backup", backups, "--verify")
        assert verified.returncode == 1 and problem in verified.stdout and orc.split("/")[-1] in verified.stdout, verified
        restored = elsewhere(gateway, tmp_path, None)
        refused = restored.attempt("restore", backups)
        assert refused.returncode != 0 and orc.split("/")[-1] in refused.stderr, refused.stderr
        assert not restored.catalog.exists(), "nothing names files that are not all there"
    s3.put_object(Bucket=bucket, Key=orc, Body=whole)
    restored = elsewhere(gateway, tmp_path, None)
    restored.run("restore", backups)
    assert check_ledger(restored, gateway, 20, 20) == 1000


def test_a_slow_and_faulty_store_makes_no_difference(backed_up, gateway, proxy, s3, bucket, tmp_path):
    source, _ = backed_up
    faulty = proxy("--latency", "2ms", "--errors", "0.05", "--lost", "0.03", "--truncated", "0.05")
    source.endpoint = faulty.url
    source.run("backup", f"s3://{bucket}/faulty")
    restored = elsewhere(gateway, tmp_path, f"s3://{bucket}/restored")
    restored.endpoint = faulty.url
    restored.run("restore", f"s3://{bucket}/faulty")
    assert faulty.counts()["faults"], "nothing was broken"
    restored.endpoint = gateway.url
    assert check_ledger(restored, gateway, 20, 20) == 1000


def test_a_place_that_does_not_do_says_why(backed_up, gateway, bucket, tmp_path):
    source, backups = backed_up
    for arguments, words in (
        (("backup", f"s3://{bucket}-missing/b"), ("bucket",)),
        (("backup", f"{source.url}/within"), ("overlap", "another place")),
        (("backup", backups, "--verify", "--id", "20000101T000000000Z-00000000"), ("no backup", "there are: ")),
        (("restore", f"s3://{bucket}/nothing"), ("no backup",)),
    ):
        place = source if arguments[0] == "backup" else elsewhere(gateway, tmp_path, None)
        refused = place.attempt(*arguments)
        assert refused.returncode != 0, arguments
        assert all(word in refused.stderr for word in words), refused.stderr
    other = elsewhere(gateway, tmp_path, None)
    other.sql("CREATE TABLE t (a int)")
    with pytest.raises(StoaError, match="(?s)holds backups of .*place of its own"):
        other.run("backup", backups, "--without-log")
