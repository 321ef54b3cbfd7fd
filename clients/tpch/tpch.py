"""The 22 queries of TPC-H on one daemon and on three that compute together: DuckDB's answers, row by row.

DuckDB makes the rows and answers first. Two daemons have all daemons compute every statement that reads files, if it can
be; the third has the same rows and computes what it is asked alone. Each table is in several files, and its last rows are in none: one
of the daemons has them in memory.

Integers, texts, dates and decimals must be equal. Where DuckDB answers with a double, as for averages of decimals, the
difference may be a billionth. Rows must come in the order of the query's ORDER BY; rows that it does not tell apart may
come in any order.
"""

import argparse
import collections
import decimal
import math
import os
import pathlib
import sys
import tempfile
import time

import duckdb
import psycopg

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import real_postgres  # noqa: E402
from daemons import PASSWORD, SUPERUSER, Daemon, cluster  # noqa: E402

# The columns by which each query orders its rows.
ORDER = {
    1: [0, 1], 2: [0, 2, 1, 3], 3: [1, 2], 4: [0], 5: [1], 7: [0, 1, 2], 8: [0], 9: [0, 1], 10: [2], 11: [1], 12: [0],
    13: [1, 0], 15: [0], 16: [3, 0, 1, 2], 18: [4, 3], 20: [0], 21: [1, 0], 22: [0],
}  # fmt: skip
# Queries that run on one daemon.
ALONE = []
# Files of each large table, and rows from which on a table is large.
FILES = 4
LARGE = 1000
TYPES = {"VARCHAR": "text"}


def generated(scale, directory):
    """DuckDB with the tables of TPC-H, in a file: large ones leave the memory to the daemons."""
    (extension,) = pathlib.Path(duckdb.__file__).parents[1].glob("duckdb_ext/extensions/*/*/tpch.duckdb_extension")
    oracle = duckdb.connect(directory / "oracle.duckdb", config={"memory_limit": "4GB"})
    oracle.execute(f"LOAD '{extension}'")
    oracle.execute(f"CALL dbgen(sf = {scale})")
    return oracle


def connect(daemon):
    return psycopg.connect(
        host="127.0.0.1", port=daemon.port, user=SUPERUSER, password=PASSWORD, dbname="stoa", autocommit=True
    )


def fill(oracle, connections, directory):
    """Makes the tables: all rows but the last quarter of the large ones come in files."""
    for (table,) in oracle.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
        columns = oracle.execute(f"DESCRIBE {table}").fetchall()
        columns = ", ".join(f"{name} {TYPES.get(kind, kind)}" for name, kind, *_ in columns)
        connections[0].execute(f"CREATE TABLE {table} ({columns})")
        (count,) = oracle.execute(f"SELECT count(*) FROM {table}").fetchone()
        parts = FILES if count >= LARGE else 1
        size = math.ceil(count / parts)
        for part in range(parts):
            rows = f"SELECT * FROM {table} WHERE rowid >= {part * size} AND rowid < {(part + 1) * size}"
            lines = directory / "rows.csv"
            oracle.execute(f"COPY ({rows}) TO '{lines}' (FORMAT csv, HEADER false)")
            is_last = parts > 1 and part == parts - 1
            connection = connections[1] if is_last else connections[0]
            with connection.cursor().copy(f"COPY {table} FROM STDIN WITH (FORMAT csv)") as copy, open(lines, "rb") as file:
                while block := file.read(1 << 20):
                    copy.write(block)
            lines.unlink()
            if not is_last:
                connection.execute(f"FLUSH TABLE {table}")
        (stored,) = connections[2].execute(f"SELECT count(*) FROM {table}").fetchone()
        assert stored == count, f"{table}: {stored} rows of {count}"


def equal(found, expected):
    """Whether a value is DuckDB's."""
    if isinstance(expected, float):
        return found is not None and math.isclose(float(found), expected, rel_tol=1e-9)
    if isinstance(expected, int) and isinstance(found, decimal.Decimal):
        return found == expected
    return found == expected and (found is None) == (expected is None)


def all_equal(found, expected):
    return len(found) == len(expected) and all(map(equal, found, expected))


def difference(number, found, expected):
    """How an answer is not DuckDB's; None if it is."""
    if len(found) != len(expected):
        return f"{len(found)} rows instead of {len(expected)}"
    for at, (row, other) in enumerate(zip(found, expected)):
        keys = [[values[column] for column in ORDER.get(number, [])] for values in (row, other)]
        if not all_equal(*keys):
            return f"row {at} is {row} instead of {other}"
    # Among rows of equal keys, any order will do. Most are where they should be.
    moved = [(row, other) for row, other in zip(found, expected) if not all_equal(row, other)]
    found, expected = [row for row, _ in moved], [other for _, other in moved]
    rest = collections.defaultdict(list)
    for row in found:
        rest[tuple(row[column] for column in ORDER.get(number, []))].append(row)
    for row in expected:
        candidates = next(
            (rows for key, rows in rest.items() if all_equal(key, [row[c] for c in ORDER.get(number, [])]) and rows), []
        )
        match = next((candidate for candidate in candidates if all_equal(candidate, row)), None)
        if match is None:
            return f"no row {row}"
        candidates.remove(match)
    return None


def distributed(connection):
    return connection.execute(
        "SELECT statements_distributed, statements_distributed_failed FROM system.cluster"
    ).fetchone()


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=float, default=float(os.environ.get("STOA_TPCH_SCALE", "0.01")))
    arguments.add_argument("--query", type=int, nargs="*", help="only these")
    arguments.add_argument("--explain", action="store_true", help="show plans")
    arguments.add_argument("--log", help="keep the daemons' logs in this directory")
    chosen = arguments.parse_args()
    if real_postgres.programs() is None:
        print("no PostgreSQL server is installed (package postgresql)\n0 passed, 0 failed, 1 skipped")
        return 0
    started = time.monotonic()
    passed, failures, alone = 0, [], []
    with tempfile.TemporaryDirectory(prefix="stoa-tpch-") as home:
        directory = pathlib.Path(chosen.log or home)
        oracle = generated(chosen.scale, pathlib.Path(home))
        queries = [(n, q) for n, q in oracle.execute("FROM tpch_queries()").fetchall() if n in (chosen.query or range(23))]
        with cluster(directory, 2, "--distributed-scan-size", "0", "--num-executors", "2") as daemons:
            catalog = daemons[0].process.args[daemons[0].process.args.index("--catalog") + 1]
            flags = ["--access-control", "--distributed-scan-size", "1TiB", "--num-executors", "2"]
            daemons.append(Daemon(directory, catalog, "alone", *flags))
            connections = [connect(daemon) for daemon in daemons]
            for connection in connections:
                connection.execute("SET result_reuse = off")
                connection.execute("SET short_path = off")
            fill(oracle, connections, pathlib.Path(home))
            print(f"scale {chosen.scale}: loaded after {time.monotonic() - started:.1f} s", flush=True)
            # A daemon computes with others once it knows which build it is.
            until = time.monotonic() + 60
            while distributed(connections[0])[0] == 0 and time.monotonic() < until:
                connections[0].execute("SELECT l_returnflag, count(*) FROM lineitem GROUP BY 1").fetchall()
            for number, sql in queries:
                expected = oracle.execute(sql).fetchall()
                times = []
                for name, connection in (("three", connections[0]), ("one", connections[2])):
                    before, begun = distributed(connection), time.monotonic()
                    try:
                        found = connection.execute(sql.strip().rstrip(";"), prepare=False).fetchall()
                        wrong = difference(number, found, expected)
                    except psycopg.Error as error:
                        wrong = f"{error.sqlstate}: {error}"
                    times.append(time.monotonic() - begun)
                    after = distributed(connection)
                    if name == "three" and after[0] == before[0]:
                        alone.append(number)
                    if name == "one" and after[0] != before[0]:
                        wrong = wrong or "it was distributed"
                    if after[1] != before[1]:
                        wrong = wrong or "its parts failed, and it ran on one daemon"
                    if wrong:
                        failures.append(f"query {number} on {name}: {wrong}")
                    else:
                        passed += 1
                print(f"query {number}: {len(expected)} rows, {times[0]:.2f} s on three, {times[1]:.2f} s on one", flush=True)
                if chosen.explain:
                    for (line,) in connections[0].execute("EXPLAIN " + sql.strip().rstrip(";"), prepare=False):
                        print("   ", line)
            for connection in connections:
                connection.close()
    if unexpected := [number for number in alone if number not in ALONE]:
        failures.append(f"queries that ran on one daemon: {unexpected}")
    else:
        passed += 1
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(queries) - len(alone)} of {len(queries)} queries were distributed")
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
