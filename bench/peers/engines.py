"""The engines that answer reports, each with the same calls.

`load` brings the table in from a Parquet file, `client` gives a function that answers one report and
hands back the engine's own rows, `rows` turns those into tuples that can be compared, `cpu_seconds` is
the CPU time that counts. Every engine gets the layout that suits the report best (sorted by account and
day) and one thread per report, so that clients, not threads, use the cores.
"""

import shutil
import time
from datetime import date
from pathlib import Path

from workload import literal, statement

CLICKHOUSE_TYPES = {"string": "String", "int64": "Int64", "date32[day]": "Date32"}
NULLABLE = {"video_views"}  # answers, and so the Parquet file, do not say it of their columns


class DuckDb:
    """In this process, the statement prepared once per client; clients are threads."""

    def __init__(self, directory):
        import duckdb

        self.database = duckdb.connect(str(Path(directory) / "reports.duckdb"), config={"threads": 1})

    def load(self, parquet, schema):
        del schema  # DuckDB takes the file's
        self.database.execute(
            f"CREATE TABLE ad_report AS SELECT * FROM read_parquet('{parquet}') ORDER BY account_id, day"
        )
        self.database.execute("CHECKPOINT")
        return self.database.execute("SELECT count(*) FROM ad_report").fetchone()[0]

    def client(self):
        cursor = self.database.cursor()
        cursor.execute(f"PREPARE report AS {statement('$1', '$2', '$3')}")

        def ask(report):
            account, first, last = report
            return cursor.execute(f"EXECUTE report({account}, DATE '{first}', DATE '{last}')").fetchall()

        return ask

    @staticmethod
    def rows(answer):
        return [(account, day, *map(int, sums)) for account, day, *sums in answer]

    @staticmethod
    def cpu_seconds():
        return time.process_time()


class Chdb:
    """ClickHouse in this process; no prepared statements over this door.

    A process answers one query after the other, however many threads ask: clients are processes, and
    as a process keeps its tables for itself, each has a copy of them.
    """

    def __init__(self, directory):
        from chdb import session

        self.server = session.Session(str(Path(directory) / "chdb"))
        self.server.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
        self.server.query("SET max_threads = 1")

    @staticmethod
    def places(directory, clients):
        directory = Path(directory)
        copies = [directory, *(directory.with_name(f"{directory.name}-{n}") for n in range(1, clients))]
        for copy in copies:
            if not copy.exists():
                partial = copy.with_suffix(".partial")
                shutil.rmtree(partial, ignore_errors=True)
                # Databases are links within the directory.
                shutil.copytree(directory, partial, symlinks=True)
                partial.rename(copy)
        return copies

    def load(self, parquet, schema):
        columns = ", ".join(f"{field.name} {clickhouse_type(field)}" for field in schema)
        self.server.query(
            f"CREATE TABLE bench.ad_report ({columns}) ENGINE = MergeTree ORDER BY (account_id, day)"
        )
        self.server.query(f"INSERT INTO bench.ad_report SELECT * FROM file('{parquet}', Parquet)")
        self.server.query("OPTIMIZE TABLE bench.ad_report FINAL")
        return int(self.server.query("SELECT count() FROM bench.ad_report", "TSV").data())

    def client(self):
        query = self.server.query
        return lambda report: query(literal(report, "bench.ad_report"), "TSV")

    @staticmethod
    def rows(answer):
        lines = (line.split("\t") for line in answer.data().splitlines())
        return [(int(line[0]), date.fromisoformat(line[1]), *map(int, line[2:])) for line in lines]

    @staticmethod
    def cpu_seconds():
        return time.process_time()


def clickhouse_type(field):
    name = CLICKHOUSE_TYPES[str(field.type)]
    return f"Nullable({name})" if field.name in NULLABLE else name


class Stoa:
    """A server that runs, over the PostgreSQL protocol; clients are processes with a connection each."""

    def __init__(self, server):
        self.server = server

    @staticmethod
    def places(server, clients):
        return [server] * clients

    def client(self):
        import psycopg

        place = f"host=127.0.0.1 port={self.server.pg_port} user=bench dbname=stoa"
        connection = psycopg.connect(place, autocommit=True)
        connection.execute("SET result_reuse = off")
        cursor = connection.cursor(binary=True)
        text = statement("%s", "%s", "%s")

        def ask(report):
            # The whole answer has arrived then; rows are decoded when they are fetched.
            return cursor.execute(text, report, prepare=True)

        return ask

    @staticmethod
    def rows(answer):
        return [(account, day, *map(int, sums)) for account, day, *sums in answer.fetchall()]

    def cpu_seconds(self):
        return self.server.cpu_seconds()


ENGINES = {"stoa": Stoa, "duckdb": DuckDb, "chdb": Chdb}
