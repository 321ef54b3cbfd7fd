#!/usr/bin/env python3
"""43 analytical statements over the ad-report table: the CPU time of each engine, and the ratios.

    bench/peers/analytical.py --stoa PATH [--rows 10000000] [--dir DIR] [--peers duckdb,chdb,datafusion] [--query 1 6 …]

They are the 43 queries of ClickBench, asked of this table's columns. Stoa's table is that of `stoa bench generate`; the
peers load its rows into tables of their own, sorted by account and day, too (DataFusion reads the Parquet file). Each answer must be DuckDB's before anything
is measured. Then all engines answer every statement in turn, `--rounds` times, warm and without reused results; shown are
medians of the CPU seconds (user and system) of each engine's process. All use as many threads as there are cores.
With `--dir`, the tables are kept for the next run.
"""

import argparse
import contextlib
import datetime
import decimal
import json
import math
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import stoa_server

# What is asked, in the order of ClickBench's queries; an account is put in place of {account}.
SUMS = ", ".join(f"sum(clicks + {n})" for n in range(30))
MONTH = "account_id = {account} AND day BETWEEN DATE '2025-07-01' AND DATE '2025-07-31'"
STATEMENTS = [
    "SELECT count(*) FROM ad_report",
    "SELECT count(*) FROM ad_report WHERE clicks <> 0",
    "SELECT sum(clicks), count(*), avg(impressions) FROM ad_report",
    "SELECT avg(campaign_id) FROM ad_report",
    "SELECT count(DISTINCT account_id) FROM ad_report",
    "SELECT count(DISTINCT campaign_id) FROM ad_report",
    "SELECT min(day), max(day) FROM ad_report",
    "SELECT conversions, count(*) AS c FROM ad_report WHERE conversions <> 0 GROUP BY conversions ORDER BY c DESC, conversions LIMIT 10",
    "SELECT region, count(DISTINCT account_id) AS u FROM ad_report GROUP BY region ORDER BY u DESC, region LIMIT 10",
    "SELECT region, sum(clicks), count(*) AS c, avg(cost), count(DISTINCT account_id) FROM ad_report GROUP BY region ORDER BY c DESC, region LIMIT 10",
    "SELECT device, count(DISTINCT account_id) AS u FROM ad_report WHERE region <> '' GROUP BY device ORDER BY u DESC, device LIMIT 10",
    "SELECT device, region, count(DISTINCT account_id) AS u FROM ad_report WHERE region <> '' GROUP BY device, region ORDER BY u DESC, device, region LIMIT 10",
    "SELECT campaign_id, count(*) AS c FROM ad_report WHERE clicks > 0 GROUP BY campaign_id ORDER BY c DESC, campaign_id LIMIT 10",
    "SELECT campaign_id, count(DISTINCT day) AS u FROM ad_report WHERE clicks > 0 GROUP BY campaign_id ORDER BY u DESC, campaign_id LIMIT 10",
    "SELECT device, campaign_id, count(*) AS c FROM ad_report WHERE clicks > 0 GROUP BY device, campaign_id ORDER BY c DESC, device, campaign_id LIMIT 10",
    "SELECT account_id, count(*) AS c FROM ad_report GROUP BY account_id ORDER BY c DESC, account_id LIMIT 10",
    "SELECT account_id, campaign_id, count(*) AS c FROM ad_report GROUP BY account_id, campaign_id ORDER BY c DESC, account_id, campaign_id LIMIT 10",
    "SELECT account_id, campaign_id, count(*) AS c FROM ad_report GROUP BY account_id, campaign_id ORDER BY account_id, campaign_id LIMIT 10",
    "SELECT account_id, extract(month FROM day) AS m, region, count(*) AS c FROM ad_report GROUP BY account_id, extract(month FROM day), region "
    "ORDER BY c DESC, account_id, m, region LIMIT 10",
    "SELECT account_id, day, clicks FROM ad_report WHERE account_id = {account} AND day = DATE '2025-07-04' ORDER BY clicks",
    "SELECT count(*) FROM ad_report WHERE region LIKE '%a%'",
    "SELECT region, min(device), count(*) AS c FROM ad_report WHERE region LIKE '%u%' AND device <> '' GROUP BY region ORDER BY c DESC, region LIMIT 10",
    "SELECT region, min(device), min(campaign_id), count(*) AS c, count(DISTINCT account_id) FROM ad_report WHERE device LIKE '%o%' AND region NOT LIKE '%s%' "
    "AND clicks > 0 GROUP BY region ORDER BY c DESC, region LIMIT 10",
    "SELECT * FROM ad_report WHERE device LIKE '%t%' ORDER BY day, account_id, campaign_id, region, impressions, clicks, cost, revenue LIMIT 10",
    "SELECT campaign_id FROM ad_report WHERE clicks > 0 ORDER BY day, campaign_id LIMIT 10",
    "SELECT region FROM ad_report WHERE clicks > 0 ORDER BY region LIMIT 10",
    "SELECT day, avg(sum(clicks)) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM ad_report GROUP BY day ORDER BY day",
    "SELECT campaign_id, avg(length(region)) AS l, count(*) AS c FROM ad_report WHERE region <> '' GROUP BY campaign_id HAVING count(*) > 1000 "
    "ORDER BY l DESC, campaign_id LIMIT 25",
    "SELECT substring(region, 1, 1) AS k, avg(length(device)) AS l, count(*) AS c, min(region) FROM ad_report GROUP BY substring(region, 1, 1) "
    "HAVING count(*) > 1000 ORDER BY l DESC, k LIMIT 25",
    f"SELECT {SUMS} FROM ad_report",
    "SELECT region, device, count(*) AS c, sum(clicks), avg(cost) FROM ad_report WHERE clicks > 0 GROUP BY region, device ORDER BY c DESC, region, device LIMIT 10",
    "SELECT account_id, campaign_id, count(*) AS c, sum(clicks), avg(cost) FROM ad_report WHERE clicks > 0 GROUP BY account_id, campaign_id "
    "ORDER BY c DESC, account_id, campaign_id LIMIT 10",
    "SELECT account_id, day, count(*) AS c, sum(clicks), avg(cost) FROM ad_report GROUP BY account_id, day ORDER BY c DESC, account_id, day LIMIT 10",
    "SELECT region, count(*) AS c FROM ad_report GROUP BY region ORDER BY c DESC, region LIMIT 10",
    "SELECT * FROM (SELECT region, day, sum(clicks) AS c, rank() OVER (PARTITION BY region ORDER BY sum(clicks) DESC, day) AS r FROM ad_report "
    "GROUP BY region, day) AS t WHERE r <= 3 ORDER BY region, r",
    "SELECT account_id, account_id - 1, account_id - 2, account_id - 3, count(*) AS c FROM ad_report "
    "GROUP BY account_id, account_id - 1, account_id - 2, account_id - 3 ORDER BY c DESC, account_id LIMIT 10",
    f"SELECT campaign_id, sum(impressions) AS s FROM ad_report WHERE {MONTH} AND clicks > 0 GROUP BY campaign_id ORDER BY s DESC, campaign_id LIMIT 10",
    f"SELECT device, sum(impressions) AS s FROM ad_report WHERE {MONTH} AND region <> '' GROUP BY device ORDER BY s DESC, device LIMIT 10",
    f"SELECT campaign_id, region, count(*) AS c FROM ad_report WHERE {MONTH} GROUP BY campaign_id, region ORDER BY c DESC, campaign_id, region LIMIT 10 OFFSET 100",
    "SELECT CASE WHEN clicks = 0 THEN 'none' WHEN clicks < 10 THEN 'few' ELSE 'many' END AS k, device, region, count(*) AS c FROM ad_report "
    "WHERE day BETWEEN DATE '2025-07-01' AND DATE '2025-07-31' GROUP BY CASE WHEN clicks = 0 THEN 'none' WHEN clicks < 10 THEN 'few' ELSE 'many' END, device, region "
    "ORDER BY c DESC, k, device, region LIMIT 10 OFFSET 100",
    "SELECT region, day, count(*) AS c FROM ad_report WHERE day BETWEEN DATE '2025-07-01' AND DATE '2025-07-31' AND conversions IN (1, 6) "
    "GROUP BY region, day ORDER BY c DESC, region, day LIMIT 10 OFFSET 100",
    "SELECT device, region, count(*) AS c FROM ad_report WHERE day BETWEEN DATE '2025-07-01' AND DATE '2025-07-31' AND clicks > 0 "
    "GROUP BY device, region ORDER BY c DESC, device, region LIMIT 10 OFFSET 50",
    "SELECT date_trunc('week', day) AS w, count(*) AS c FROM ad_report WHERE day BETWEEN DATE '2025-07-01' AND DATE '2025-08-31' GROUP BY date_trunc('week', day) "
    "ORDER BY w LIMIT 10",
]


def plain(value):
    """A value as all engines have it."""
    if isinstance(value, (decimal.Decimal, float)):
        return float(f"{float(value):.9g}")
    if isinstance(value, (datetime.date, datetime.datetime)):
        return str(value)[:10]
    if isinstance(value, str) and len(value) >= 10 and value[4:5] == "-" and value[7:8] == "-":
        return value[:10]
    return float(f"{value:.9g}") if isinstance(value, int) and not isinstance(value, bool) else value


def plain_rows(rows):
    return sorted([tuple(map(plain, row)) for row in rows], key=repr)


class InAProcess:
    """An engine in a process of its own, so that its CPU time is told from that of others."""

    def __init__(self, make, *of):
        self.here, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=answering, args=(there, make, of), daemon=True)
        self.process.start()
        there.close()
        self.here.recv()

    def ask(self, sql):
        """The rows, and the CPU seconds and seconds that they took."""
        self.here.send(sql)
        rows, cpu, took = self.here.recv()
        if isinstance(rows, str):
            raise RuntimeError(rows)
        return rows, cpu, took


def answering(pipe, make, of):
    ask = make(*of)
    pipe.send(None)
    while True:
        try:
            sql = pipe.recv()
        except EOFError:
            return
        cpu, begun = time.process_time(), time.monotonic()
        try:
            rows = ask(sql)
        except Exception as error:  # said where it was asked
            rows = f"{error}"[:300]
        pipe.send((rows, time.process_time() - cpu, time.monotonic() - begun))


def duckdb_engine(directory, parquet):
    import duckdb

    database = duckdb.connect(str(Path(directory) / "analytical.duckdb"))
    if not database.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'ad_report'").fetchall():
        database.execute(f"CREATE TABLE ad_report AS SELECT * FROM read_parquet('{parquet}') ORDER BY account_id, day")
        database.execute("CHECKPOINT")
    return lambda sql: database.execute(sql).fetchall()


def chdb_engine(directory, parquet):
    import pyarrow.parquet as pq
    from chdb import session
    from engines import clickhouse_type

    server = session.Session(str(Path(directory) / "chdb"))
    server.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
    if str(server.query("EXISTS TABLE bench.ad_report", "TSV")).strip() == "0":
        columns = ", ".join(f"{field.name} {clickhouse_type(field)}" for field in pq.read_schema(parquet))
        server.query(f"CREATE TABLE bench.ad_report ({columns}) ENGINE = MergeTree ORDER BY (account_id, day)")
        server.query(f"INSERT INTO bench.ad_report SELECT * FROM file('{parquet}', Parquet)")
        server.query("OPTIMIZE TABLE bench.ad_report FINAL")

    def ask(sql):
        answer = str(server.query(sql.replace("ad_report", "bench.ad_report"), "JSONCompact"))
        return [tuple(map(number, row)) for row in json.loads(answer)["data"]]

    return ask


def number(value):
    """Integers of 64 bits come as texts."""
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value


def datafusion_engine(directory, parquet):
    """The engine below Stoa, on the Parquet file: it has no tables of its own."""
    from datafusion import SessionContext

    context = SessionContext()
    context.register_parquet("ad_report", parquet)

    def ask(sql):
        batches = context.sql(sql).collect()
        return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns))]

    return ask


PEERS = {"duckdb": duckdb_engine, "chdb": chdb_engine, "datafusion": datafusion_engine}


class Stoa:
    """A server, over the PostgreSQL protocol, with text."""

    def __init__(self, server, settings):
        import psycopg

        self.server = server
        self.connection = psycopg.connect(host="127.0.0.1", port=server.pg_port, user="bench", dbname="stoa", autocommit=True)
        for setting in ["result_reuse=off", *settings]:
            name, value = setting.split("=")
            self.connection.execute(f"SET {name} = {value}")

    def cpu(self):
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, sql):
        cpu, begun = self.cpu(), time.monotonic()
        rows = self.connection.execute(sql.encode(), prepare=False).fetchall()
        return rows, self.cpu() - cpu, time.monotonic() - begun


def measured(engine, sql):
    """CPU seconds and seconds of a warm statement; a short one is asked until it has used what can be seen."""
    cpu, took, asked = 0.0, 0.0, 0
    while asked == 0 or (cpu < 0.25 and asked < 200 and took < 1):
        _, one_cpu, one_took = engine.ask(sql)
        cpu, took, asked = cpu + one_cpu, took + one_took, asked + 1
    return cpu / asked, took / asked


def compared(engines, statements):
    """What is answered differently than by DuckDB, by statement and engine."""
    wrong = {}
    for place, sql in statements.items():
        expected = plain_rows(engines["duckdb"].ask(sql)[0])
        for name, engine in engines.items():
            try:
                found = plain_rows(engine.ask(sql)[0])
            except Exception as error:
                wrong[place, name] = str(error)[:200]
                continue
            if found != expected:
                differs = next((pair for pair in zip(found, expected) if pair[0] != pair[1]), (len(found), len(expected)))
                wrong[place, name] = f"{differs}"[:300]
    return wrong


def show(place, medians, names):
    line = f"{place:5}" + "".join(f" {1000 * medians[name][0]:12.1f}" if name in medians else f" {'–':>12}" for name in names)
    for name in names[1:]:
        line += f" {medians['stoa'][0] / medians[name][0]:8.2f}" if name in medians else f" {'–':>8}"
    print(line, flush=True)


def run(options, directory, stack):
    warehouse, parquet = directory / "stoa", directory / "ad_report.parquet"
    stoa_server.generate(options, warehouse)
    server = stack.enter_context(stoa_server.serve(options, warehouse))
    if not parquet.exists():
        stoa_server.export(server, parquet)
    engines = {"stoa": Stoa(server, options.set)}
    for name in dict.fromkeys(["duckdb", *options.peers]):
        engines[name] = InAProcess(PEERS[name], str(directory), str(parquet))
    # The account with the most rows.
    account = engines["duckdb"].ask("SELECT account_id FROM ad_report GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1")[0][0][0]
    statements = {place: sql.replace("{account}", str(account)) for place, sql in enumerate(STATEMENTS, 1)}
    statements = {place: sql for place, sql in statements.items() if not options.query or place in options.query}
    wrong = compared(engines, statements)
    for (place, name), how in wrong.items():
        print(f"WRONG statement {place}, {name}: {how}")
    names = list(engines)
    print(f"{options.rows:,} rows, CPU ms per statement, medians of {options.rounds} rounds; ratio: Stoa's to the peer's; load {os.getloadavg()[0]:.1f}")
    print("".join(["state", *(f" {name:>12}" for name in names), *(f" {name:>8}" for name in names[1:])]))
    figures = {}
    for place, sql in statements.items():
        asked = {name: engine for name, engine in engines.items() if (place, name) not in wrong}
        rounds = {name: [] for name in asked}
        for _ in range(options.rounds):
            for name, engine in asked.items():
                rounds[name].append(measured(engine, sql))
        medians = {name: [statistics.median(of) for of in zip(*runs)] for name, runs in rounds.items()}
        figures[place] = {"sql": sql, **medians}
        show(place, medians, names)
    for name in names[1:]:
        ratios = [one["stoa"][0] / one[name][0] for one in figures.values() if name in one and "stoa" in one]
        mean, fewer = math.exp(statistics.mean(map(math.log, ratios))), sum(ratio < 1 for ratio in ratios)
        print(f"Stoa : {name}: geometric mean {mean:.2f}, {fewer} of {len(ratios)} with less CPU, largest {max(ratios):.2f}; load {os.getloadavg()[0]:.1f}")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1))
    return 1 if any(name == "stoa" for _, name in wrong) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--stoa", required=True)
    add("--rows", type=int, default=10_000_000)
    add("--accounts", type=int, default=100_000)
    add("--seed", type=int, default=1)
    add("--peers", type=lambda text: text.split(","), default=["duckdb", "chdb", "datafusion"], help=", ".join(PEERS))
    add("--query", type=int, nargs="*", default=[])
    add("--rounds", type=int, default=3)
    add("--set", action="append", default=[])
    add("--dir", type=Path, help="where tables are made and kept (default: made for this run, then removed)")
    add("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = options.dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stoa-analytical-")))
        directory.mkdir(parents=True, exist_ok=True)
        return run(options, directory.resolve(), stack)


if __name__ == "__main__":
    sys.exit(main())
