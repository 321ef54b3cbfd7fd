"""Stoa's side: the table, a server that serves it, and `stoa bench report`."""

import json
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Server:
    """Where a server listens."""

    http: str
    pg_port: int
    pid: int

    def cpu_seconds(self):
        with urllib.request.urlopen(f"{self.http}/metrics") as response:
            lines = response.read().decode().splitlines()
        return float(next(line for line in lines if line.startswith("stoa_process_cpu_seconds_total")).split()[1])

    def recent_statements(self):
        """What the benchmark's user asked, oldest first."""
        with urllib.request.urlopen(f"{self.http}/v1/queries") as response:
            ended = json.load(response)["recent"]
        return [query["sql"] for query in sorted(ended, key=lambda query: query["id"]) if query["user"] == "bench"]


@contextmanager
def serve(options, warehouse, *more):
    """A server on free ports, with `more` arguments, until the block ends."""
    command = [options.stoa, "server", "--warehouse", str(warehouse), "--log-level", "warn"]
    command += ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "none", *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if not line:
            sys.exit("the server did not start")
        said = json.loads(line)
        yield Server(f"http://127.0.0.1:{said['http_port']}", said["pg_port"], process.pid)
    finally:
        process.terminate()
        process.wait()


def table_of(options):
    """The arguments that say which table it is."""
    return ["--rows", str(options.rows), "--accounts", str(options.accounts), "--seed", str(options.seed)]


def generate(options, warehouse):
    """Makes Stoa's table unless it is there."""
    if not (warehouse / "public" / "ad_report").exists():
        command = [options.stoa, "bench", "generate", "--warehouse", str(warehouse), *table_of(options)]
        subprocess.run(command, check=True)


def export(server, parquet):
    """All rows as Stoa gives them, into a Parquet file for the peers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    headers = {"Accept": "application/vnd.apache.arrow.stream", "Content-Type": "text/plain"}
    request = urllib.request.Request(f"{server.http}/v1/sql", b"SELECT * FROM ad_report", headers)
    partial = parquet.with_suffix(".partial")
    with urllib.request.urlopen(request) as response, pa.ipc.open_stream(response) as batches:
        schema = pa.schema([pa.field(field.name, plain(field.type)) for field in batches.schema])
        with pq.ParquetWriter(partial, schema) as writer:
            for batch in batches:
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
    partial.rename(parquet)


def plain(data_type):
    """Strings come as views, which not every peer reads."""
    import pyarrow as pa

    return pa.string() if pa.types.is_string_view(data_type) else data_type


def bench_report(options, server, clients, more):
    """Runs `stoa bench report` on the server; gives its figures."""
    command = [options.stoa, "bench", "report", *table_of(options), "--json", "--set", "result_reuse=off"]
    command += ["--url", server.http, "--port", str(server.pg_port), "--pid", str(server.pid)]
    command += ["--clients", str(clients), *more]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["runs"][0]
