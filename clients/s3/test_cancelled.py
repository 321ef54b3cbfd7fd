"""A statement that is cancelled while it sends a large file leaves nothing in the store: no file, and no upload that is
incomplete, which stores bill and do not list among files. boto3 says what is there.
"""

import threading
import time

import pytest

from warehouse import StoaError

LIMIT = 60
ROWS = "SELECT value AS id, md5(value::text) || md5((value + 1)::text) AS h FROM generate_series(1, 30000000) AS s(value)"


def until(what, is_so):
    end = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.05)


def uploads(s3, bucket):
    return s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])


def keys(s3, bucket):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))


def cancelled(server, s3, bucket, statement):
    """Runs `statement` until it sends a file, and kills it."""
    refused = []

    def run():
        with pytest.raises(StoaError) as error:
            server.sql(statement)
        refused.append(str(error.value))

    thread = threading.Thread(target=run)
    thread.start()
    until("an upload begins", lambda: uploads(s3, bucket))
    running = server.sql("SELECT id, sql FROM system.queries WHERE state = 'running'")
    [query] = [row["id"] for row in running if row["sql"] == statement]
    server.sql(f"KILL QUERY {query}")
    thread.join(LIMIT)
    assert len(refused) == 1, "the statement goes on"


@pytest.mark.parametrize("round", range(3))
def test_a_table(warehouse, s3, bucket, round):
    server = warehouse.server("--no-maintenance")
    for statement in ("CREATE TABLE t (id bigint, h text)", "INSERT INTO t VALUES (1, 'a')", "FLUSH TABLE t"):
        server.sql(statement)
    before = keys(s3, bucket)
    cancelled(server, s3, bucket, f"INSERT INTO t {ROWS}")
    until("its uploads are given up", lambda: not uploads(s3, bucket))
    assert server.sql("SELECT id, h FROM t") == [{"id": 1, "h": "a"}]
    # A file that was complete when the statement ended is nobody's, and upkeep removes it.
    server.stop()
    warehouse.run("table", "clean", "--older-than", "0s")
    assert keys(s3, bucket) == before


@pytest.mark.parametrize("round", range(3))
def test_an_external_table(warehouse, s3, bucket, round):
    folder = warehouse.directory / "files"
    folder.mkdir()
    server = warehouse.server("--file-access", str(folder))
    server.sql(f"CREATE EXTERNAL TABLE t (id bigint, h text) STORED AS textfile LOCATION 's3://{bucket}/ext'")
    before = keys(s3, bucket)
    cancelled(server, s3, bucket, f"INSERT INTO t {ROWS}")
    until("its uploads are given up", lambda: not uploads(s3, bucket))
    until("its files are gone", lambda: keys(s3, bucket) == before)
    assert server.sql("SELECT count(*) AS n FROM t") == [{"n": 0}]
