"""A server of its own that is killed while rows come in: those acknowledged are there, once."""

import json
import os
import pathlib
import random
import signal
import subprocess
import threading

import adbc_driver_manager
import pyarrow as pa

from conftest import connect

WRITERS = 4
ROUNDS = 3


class Server:
    def __init__(self, warehouse):
        ports = ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "none"]
        command = [os.environ["STOA_BIN"], "server", "--warehouse", warehouse, *ports]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.uri = f"grpc://127.0.0.1:{json.loads(self.process.stdout.readline())['flight_port']}"

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(30)
        self.process.stdout.close()


def write(uri, writer, acknowledged, enough):
    """Ingests batches of rows that no other has, until the server is gone."""
    start = len(acknowledged) * WRITERS * 1_000_000 + writer
    with connect(uri) as connection, connection.cursor() as cursor:
        for n in range(100_000):
            ids = [start + (n * 10 + k) * WRITERS for k in range(10)]
            try:
                cursor.adbc_ingest("kept", pa.table({"id": ids}), mode="append")
            except adbc_driver_manager.Error:
                return
            acknowledged[-1].extend(ids)
            enough.release()


def test_acknowledged_rows_are_there_once_after_a_kill(tmp_path: pathlib.Path):
    warehouse = str(tmp_path / "warehouse")
    chance = random.Random(7)
    acknowledged = []
    for round in range(ROUNDS):
        server = Server(warehouse)
        with connect(server.uri) as connection, connection.cursor() as cursor:
            if round == 0:
                cursor.execute("CREATE TABLE kept (id bigint)")
        acknowledged.append([])
        enough = threading.Semaphore(0)
        threads = [
            threading.Thread(target=write, args=(server.uri, writer, acknowledged, enough))
            for writer in range(WRITERS)
        ]
        for thread in threads:
            thread.start()
        for _ in range(chance.randint(50, 200)):
            assert enough.acquire(timeout=30)
        server.end(signal.SIGKILL)
        for thread in threads:
            thread.join()

    server = Server(warehouse)
    with connect(server.uri) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM kept")
        there = cursor.fetch_arrow_table()["id"].to_pylist()
    server.end(signal.SIGTERM)
    promised = {id for ids in acknowledged for id in ids}
    assert len(there) == len(set(there)), "rows are there twice"
    assert promised <= set(there), f"{len(promised - set(there))} rows are lost"
    # What was under way at a kill may be there or not: one call of each writer.
    assert len(set(there) - promised) <= ROUNDS * WRITERS * 10
