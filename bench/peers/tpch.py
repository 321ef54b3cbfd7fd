#!/usr/bin/env python3
"""The 22 queries of TPC-H, planned by Stoa and by DuckDB: the CPU time of each, and the ratio.

    bench/peers/tpch.py --stoa PATH [--scale 1] [--dir DIR] [--query 1 6 …] [--set batch_size=8192 …] [--cold]

DuckDB generates the rows, which both load into tables of their own. Every answer of Stoa must be DuckDB's, by the rules of
`clients/tpch`. Then both answer every query in turn, `--rounds` times, warm; shown are medians of the CPU seconds (user and
system) of Stoa's process and of DuckDB's, which answers in this one, and their geometric mean at the end. Both use as many
threads as there are cores. Needs `clients/tpch/requirements.txt`. With `--dir`, the tables are kept for the next run.

With `--cold`, each query is the first that a process answers: of a server that has just started on its ORC files, and of a
DuckDB that has just started on the same tables in Parquet files (written by DuckDB, with zstd). Files are in the page cache, so
that it is not the disk that is measured. What a process needs before it can be asked does not count.
"""

import argparse
import contextlib
import importlib.util
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time

import duckdb
import psycopg
import stoa_server

# The suite of the same name, which makes the rows and compares answers.
SUITE = importlib.util.spec_from_file_location(
    "tpch_suite", pathlib.Path(__file__).resolve().parents[2] / "clients" / "tpch" / "tpch.py"
)
suite = importlib.util.module_from_spec(SUITE)
SUITE.loader.exec_module(suite)

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time of a process, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def connect(server, settings):
    connection = psycopg.connect(host="127.0.0.1", port=server.pg_port, user="bench", dbname="stoa", autocommit=True)
    # What is measured is the plan over the scans, not an answer that was kept.
    for setting in ["result_reuse=off", *settings]:
        name, value = setting.split("=")
        connection.execute(f"SET {name} = {value}")
    return connection


def fill(oracle, connection, directory):
    """Brings DuckDB's rows into tables of Stoa, each in one statement."""
    for (table,) in oracle.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
        columns = oracle.execute(f"DESCRIBE {table}").fetchall()
        columns = ", ".join(f"{name} {suite.TYPES.get(kind, kind)}" for name, kind, *_ in columns)
        connection.execute(f"CREATE TABLE {table} ({columns})")
        lines = directory / "rows.csv"
        oracle.execute(f"COPY {table} TO '{lines}' (FORMAT csv, HEADER false)")
        with connection.cursor().copy(f"COPY {table} FROM STDIN WITH (FORMAT csv)") as copy, open(lines, "rb") as file:
            while block := file.read(1 << 20):
                copy.write(block)
        lines.unlink()
        connection.execute(f"FLUSH TABLE {table}")
        (count,) = oracle.execute(f"SELECT count(*) FROM {table}").fetchone()
        (stored,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert stored == count, f"{table}: {stored} rows of {count}"


def measured(ask, pid, rounds):
    """Medians of CPU seconds and seconds of a query that is warm. A short one is asked until it has used what can be seen."""
    cpu, took = [], []
    for _ in range(rounds):
        begun_cpu, begun, asked = cpu_seconds(pid), time.monotonic(), 0
        while asked == 0 or (cpu_seconds(pid) - begun_cpu < 0.3 and asked < 20):
            ask()
            asked += 1
        cpu.append((cpu_seconds(pid) - begun_cpu) / asked)
        took.append((time.monotonic() - begun) / asked)
    return statistics.median(cpu), statistics.median(took)


def to_parquet(oracle, directory):
    """The tables as Parquet files, a folder of them; made once."""
    folder = directory / "parquet"
    if not folder.exists():
        partial = directory / "parquet.partial"
        partial.mkdir(exist_ok=True)
        for (table,) in oracle.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
            oracle.execute(f"COPY {table} TO '{partial / table}.parquet' (FORMAT parquet, COMPRESSION zstd)")
        partial.rename(folder)
    return folder


def first_answer_of_duckdb(folder, sql, answers):
    """Runs in a process of its own: the first query over Parquet files."""
    connection = duckdb.connect(config={"memory_limit": "4GB"})
    for file in folder.iterdir():
        connection.execute(f"CREATE VIEW {file.stem} AS FROM '{file}'")
    begun_cpu, begun = time.process_time(), time.monotonic()
    found = connection.execute(sql).fetchall()
    answers.put((time.process_time() - begun_cpu, time.monotonic() - begun, found))


def first_answer_of_stoa(options, directory, sql):
    """CPU seconds and seconds of the first query of a server, and the answer."""
    # Or it would bring back what reports asked for before it started.
    started = stoa_server.serve(options, directory / "warehouse", "--no-warm-restart")
    with started as server, connect(server, options.set) as connection:
        connection.execute("SELECT 1").fetchall()
        begun_cpu, begun = cpu_seconds(server.pid), time.monotonic()
        found = connection.execute(sql, prepare=False).fetchall()
        took = time.monotonic() - begun
        return cpu_seconds(server.pid) - begun_cpu, took, found


def cold(options, directory, folder, number, sql):
    """Medians of the first answers of new processes, which take turns; and how answers differ."""
    stoa, duck, wrong = [], [], []
    # Threads of DuckDB do not survive a fork.
    processes = multiprocessing.get_context("spawn")
    for turn in range(options.rounds + 1):
        answers = processes.Queue()
        process = processes.Process(target=first_answer_of_duckdb, args=(folder, sql, answers))
        process.start()
        *figures, expected = answers.get()
        process.join()
        *ours, found = first_answer_of_stoa(options, directory, sql)
        if problem := suite.difference(number, found, expected):
            wrong.append(f"query {number}: {problem}")
        # The first round brings the files into the page cache.
        if turn > 0:
            stoa.append(ours)
            duck.append(figures)
    return [*map(statistics.median, zip(*stoa)), *map(statistics.median, zip(*duck))], wrong


def warm(options, oracle, server, connection, number, sql):
    """Medians of CPU seconds and seconds of Stoa and of DuckDB once both are warm; and how answers differ."""
    ask_stoa = lambda: connection.execute(sql, prepare=False).fetchall()  # noqa: E731
    ask_duckdb = lambda: oracle.execute(sql).fetchall()  # noqa: E731
    expected = ask_duckdb()
    # The first answers make both warm.
    wrong = [f"query {number}: {problem}" for _ in range(2) if (problem := suite.difference(number, ask_stoa(), expected))]
    ask_stoa()
    return [*measured(ask_stoa, server.pid, options.rounds), *measured(ask_duckdb, os.getpid(), options.rounds)], wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoa", required=True)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--dir", type=pathlib.Path, help="where the tables are, or will be")
    parser.add_argument("--query", type=int, nargs="*", default=range(1, 23))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--cold", action="store_true", help="first answers of new processes; DuckDB's from Parquet files")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = options.dir or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stoa-tpch-")))
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / "oracle.duckdb").exists():
            oracle = duckdb.connect(directory / "oracle.duckdb", config={"memory_limit": "4GB"})
            (extension,) = pathlib.Path(duckdb.__file__).parents[1].glob("duckdb_ext/extensions/*/*/tpch.duckdb_extension")
            oracle.execute(f"LOAD '{extension}'")
        else:
            oracle = suite.generated(options.scale, directory)
        if not (directory / "filled").exists():
            with stoa_server.serve(options, directory / "warehouse") as server, connect(server, options.set) as connection:
                fill(oracle, connection, directory)
            (directory / "filled").touch()
        if options.cold:
            folder = to_parquet(oracle, directory)
        else:
            server = stack.enter_context(stoa_server.serve(options, directory / "warehouse"))
            connection = stack.enter_context(connect(server, options.set))
        queries = [(number, sql.strip().rstrip(";")) for number, sql in oracle.execute("FROM tpch_queries()").fetchall()]
        if options.cold:
            oracle.close()
        figures, wrong = {}, []
        print(f"{'query':>5} {'Stoa CPU s':>11} {'DuckDB CPU s':>13} {'ratio':>6} {'Stoa s':>8} {'DuckDB s':>9}  load {os.getloadavg()[0]:.1f}")
        for number, sql in queries:
            if number not in options.query:
                continue
            if options.cold:
                (stoa_cpu, stoa_took, duckdb_cpu, duckdb_took), problems = cold(options, directory, folder, number, sql)
            else:
                (stoa_cpu, stoa_took, duckdb_cpu, duckdb_took), problems = warm(options, oracle, server, connection, number, sql)
            wrong += problems
            figures[number] = {"stoa_cpu": stoa_cpu, "duckdb_cpu": duckdb_cpu, "stoa": stoa_took, "duckdb": duckdb_took}
            print(
                f"{number:5} {stoa_cpu:11.3f} {duckdb_cpu:13.3f} {stoa_cpu / duckdb_cpu:6.2f} {stoa_took:8.3f} {duckdb_took:9.3f}",
                flush=True,
            )
    for what, ours, theirs in [("CPU", "stoa_cpu", "duckdb_cpu"), ("time", "stoa", "duckdb")]:
        ratios = [one[ours] / one[theirs] for one in figures.values()]
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        print(f"geometric mean of the ratios of {what}: {mean:.2f}, largest {max(ratios):.2f}; load {os.getloadavg()[0]:.1f}")
    for problem in wrong:
        print("WRONG", problem)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
