#!/usr/bin/env python3
"""Durable writes: Stoa beside DuckDB, ClickHouse (chdb) and fjall, in one run, as ratios.

    bench/peers/ingest.py --stoa PATH [--fjall PATH] [--seconds N] [--writers 1,32] [--rows N]
                          [--rounds N] [--dir DIR]

Needs duckdb, chdb and pyarrow (`pip install -r bench/peers/requirements.txt`). Everybody appends the
same rows of eight integers (36 bytes), so many at a time, from so many threads or connections, and
waits each time until they are synced: DuckDB commits, ClickHouse inserts into a MergeTree with
fsync_after_insert and fsync_part_directory, fjall (`cargo build --release -p stoa-bench --example
fjall_ingest`) commits a batch and persists it with SyncAll. Contenders take turns, each in a process
of its own. Stoa's rows come over a socket as Arrow streams over HTTP, those of the others from memory.
CPU is the whole process for the others, the server for Stoa. Rows are counted at the end of each run.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

NAMES = ["parcel", "place", "day", "account", "campaign", "impressions", "clicks", "cost"]


def batches(rows):
    import pyarrow as pa

    made = []
    for number in range(32):
        columns = [pa.array([number] * rows, pa.int64()), pa.array(range(rows), pa.int32())]
        for column in range(6):
            seed = number * 131 + column * 17
            values = [(seed + place * 2654435761) % 100_000 for place in range(rows)]
            columns.append(pa.array(values, pa.int32()))
        made.append(pa.table(columns, names=NAMES))
    return made


def threads(writers, seconds, append):
    """Runs `append(writer, n)` in so many threads; gives appends, seconds, latencies in ms."""
    times = [[] for _ in range(writers)]
    errors = []

    def work(writer):
        try:
            end = time.monotonic() + seconds
            n = 0
            while (begin := time.monotonic()) < end:
                append(writer, n)
                times[writer].append((time.monotonic() - begin) * 1000)
                n += 1
        except Exception as error:  # shown by the caller
            errors.append(error)

    begin = time.monotonic()
    workers = [threading.Thread(target=work, args=(writer,)) for writer in range(writers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    latencies = [ms for one in times for ms in one]
    return len(latencies), time.monotonic() - begin, latencies


def duckdb(directory, writers, rows, seconds):
    import duckdb as db

    made = batches(rows)
    connection = db.connect(str(directory / "bench.duckdb"))
    columns = "parcel BIGINT NOT NULL, " + ", ".join(f"{name} INT NOT NULL" for name in NAMES[1:])
    connection.execute(f"CREATE TABLE events ({columns})")
    cursors = [connection.cursor() for _ in range(writers)]
    cpu = time.process_time()

    def append(writer, n):
        batch = made[(writer + n) % len(made)]  # DuckDB finds it by its name
        cursors[writer].execute("INSERT INTO events SELECT * FROM batch")

    appends, took, latencies = threads(writers, seconds, append)
    cpu = time.process_time() - cpu
    found = connection.execute("SELECT count(*) FROM events").fetchone()[0]
    return figures(appends * rows, took, latencies, cpu, found)


def chdb(directory, writers, rows, seconds):
    from chdb import session

    made = batches(rows)
    server = session.Session(str(directory / "chdb"))
    columns = "parcel Int64, " + ", ".join(f"{name} Int32" for name in NAMES[1:])
    server.query("CREATE DATABASE bench ENGINE = Atomic")
    server.query(
        f"CREATE TABLE bench.events ({columns}) ENGINE = MergeTree ORDER BY account "
        "SETTINGS fsync_after_insert = 1, fsync_part_directory = 1"
    )
    cpu = time.process_time()

    def append(writer, n):
        batch = made[(writer + n) % len(made)]  # chdb finds it by its name
        server.query("INSERT INTO bench.events SELECT * FROM Python(batch)")

    appends, took, latencies = threads(writers, seconds, append)
    cpu = time.process_time() - cpu
    found = int(server.query("SELECT count() FROM bench.events", "CSV").data())
    return figures(appends * rows, took, latencies, cpu, found)


def figures(rows, took, latencies, cpu, found):
    if found != rows:
        raise SystemExit(f"{found} rows are there, {rows} were acknowledged")
    latencies.sort()
    return {
        "rows_per_second": rows / took,
        "ack_p50_ms": latencies[len(latencies) // 2],
        "ack_p99_ms": latencies[int(len(latencies) * 0.99)],
        "cpu_ns_per_row": cpu * 1e9 / max(rows, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def stoa(options, directory, writers):
    command = [options.stoa, "bench", "ingest", "--path", "arrow", "--writers", str(writers), "--json"]
    command += ["--rows", str(options.rows), "--seconds", f"{options.seconds}s", "--dir", str(directory / "w")]
    run = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"][0]
    return {
        "rows_per_second": run["rows_per_second"],
        "ack_p50_ms": run["ack_p50_us"] / 1000,
        "ack_p99_ms": run["ack_p99_us"] / 1000,
        "cpu_ns_per_row": run["server_cpu_ns_per_row"],
        "peak_mib": run["server_peak_rss_bytes"] / 2**20,
    }


def fjall(options, directory, writers):
    command = [options.fjall, str(directory / "fjall"), str(writers), str(options.rows), str(options.seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peer(name, options, directory, writers):
    """Runs a contender of this file in a process of its own."""
    command = [sys.executable, __file__, "--only", name, "--dir", str(directory), "--writers", str(writers)]
    command += ["--rows", str(options.rows), "--seconds", str(options.seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoa", help="the stoa binary")
    parser.add_argument("--fjall", help="the example fjall_ingest")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--writers", default="1,32")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=None)
    parser.add_argument("--only", choices=["duckdb", "chdb"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        run = {"duckdb": duckdb, "chdb": chdb}[options.only]
        print(json.dumps(run(options.dir, int(options.writers), options.rows, options.seconds)))
        return
    contenders = {"duckdb": lambda *a: peer("duckdb", *a), "chdb": lambda *a: peer("chdb", *a)}
    if options.fjall:
        contenders["fjall"] = fjall
    if options.stoa:
        contenders = {"stoa": stoa, **contenders}
    print(f"{options.rows} rows per append, medians of {options.rounds} rounds of {options.seconds} s")
    print(f"{'':8} {'writers':>7} {'rows/s':>12} {'ack p50 ms':>10} {'ack p99 ms':>10} {'CPU ns/row':>10} {'peak MiB':>8}  rows/s, CPU: Stoa relative to it")
    for writers in map(int, options.writers.split(",")):
        runs = {name: [] for name in contenders}
        for _ in range(options.rounds):
            for name, run in contenders.items():
                directory = Path(tempfile.mkdtemp(dir=options.dir))
                try:
                    runs[name].append(run(options, directory, writers))
                finally:
                    shutil.rmtree(directory, ignore_errors=True)
        medians = {
            name: {key: statistics.median(run[key] for run in found) for key in found[0]}
            for name, found in runs.items()
        }
        for name, m in medians.items():
            ours = medians.get("stoa", m)
            print(
                f"{name:8} {writers:7} {m['rows_per_second']:12,.0f} {m['ack_p50_ms']:10.2f} {m['ack_p99_ms']:10.2f} "
                f"{m['cpu_ns_per_row']:10,.0f} {m['peak_mib']:8.0f}  "
                f"{ours['rows_per_second'] / m['rows_per_second']:.2f} x, {ours['cpu_ns_per_row'] / m['cpu_ns_per_row']:.2f} x"
            )


main()
