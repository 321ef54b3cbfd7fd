"""The reports of `stoa bench report` over HiveServer2: Hive's JDBC driver with several clients, PyHive with one; beside
them, in the same run, the same reports over the PostgreSQL protocol.

Statements are those of `stoa bench report`, with literals. Answers over HiveServer2 are compared with those over HTTP,
those over the PostgreSQL protocol with the generator's sums.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.append(str(pathlib.Path(__file__).parents[1] / "peers"))
import stoa_server  # noqa: E402
import workload  # noqa: E402
from pyhive import hive  # noqa: E402

REPORTS = 20_000
CHECKED = 200
HERE = pathlib.Path(__file__).parent


def serve(options):
    """A server on free ports; gives it, and its port of HiveServer2."""
    command = [options.stoa, "server", "--warehouse", str(options.warehouse), "--log-level", "warn"]
    command += ["--http-port", "0", "--pg-port", "0", "--flight-port", "0", "--hive-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if not line:
        sys.exit("the server did not start")
    said = json.loads(line)
    server = stoa_server.Server(f"http://127.0.0.1:{said['http_port']}", said["pg_port"], process.pid)
    return process, server, said["hive_port"]


def sql(server, text):
    """The rows of a statement over HTTP."""
    request = urllib.request.Request(
        f"{server.http}/v1/sql", json.dumps({"sql": text}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["rows"]


def statements(options):
    """Those that the first client of `stoa bench report` sends."""
    picker = workload.Picker(options.rows, options.accounts, options.seed, 0)
    return [workload.literal(picker.pick("recent")) for _ in range(REPORTS)]


def check(server, port, reports):
    """Compares answers over HiveServer2 with those over HTTP."""
    cursor = hive.connect("127.0.0.1", port, auth="NOSASL").cursor()
    lines = 0
    for report in reports[:CHECKED]:
        cursor.execute(report)
        ours = [tuple(map(str, row)) for row in cursor.fetchall()]
        theirs = [tuple(map(str, row)) for row in sql(server, report)]
        if ours != theirs:
            sys.exit(f"{report}:\n{ours}\nover HTTP:\n{theirs}")
        lines += len(ours)
    print(f"{CHECKED} answers over HiveServer2 are those over HTTP: {lines} lines", file=sys.stderr)


def short_path(server):
    """The share of the last statements over HiveServer2 that took the short path, and how many they were."""
    rows = sql(server, "SELECT short_path, count(*) FROM system.queries WHERE protocol = 'hive' AND sql LIKE '%ad_report%' GROUP BY 1")
    counts = {row[0]: int(row[1]) for row in rows}
    total = sum(counts.values())
    return counts.get(True, 0) / total if total else 0.0, total


def by_jdbc(server, port, options, clients, file):
    url = f"jdbc:hive2://127.0.0.1:{port}/default;auth=noSasl"
    command = ["java", "-Xmx512m", "-cp", f"{options.classes}:{options.driver}", "HiveReports", url, str(file)]
    command += [str(clients), str(options.warm_up), str(options.seconds), *options.set]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if process.stdout.readline().strip() != "begin":
        sys.exit("Hive's JDBC driver got no answers: " + " ".join(command))
    before = server.cpu_seconds()
    line = process.stdout.readline()
    used = server.cpu_seconds() - before
    if process.wait() != 0:
        sys.exit(f"Hive's JDBC driver failed: {line}")
    return {**json.loads(line), "cpu_seconds": used}


def by_pyhive(server, port, options, reports):
    """One client in Python, as Yahoo! JAPAN had many of."""
    cursor = hive.connect("127.0.0.1", port, auth="NOSASL").cursor()
    for setting in options.set:
        cursor.execute(f"SET {setting}")
    ask = lambda report: (cursor.execute(report), cursor.fetchall())
    at, until = 0, time.monotonic() + options.warm_up
    while time.monotonic() < until:
        ask(reports[at % len(reports)])
        at += 1
    before, begin, times = server.cpu_seconds(), time.monotonic(), []
    now = begin
    while now < begin + options.seconds:
        ask(reports[at % len(reports)])
        at += 1
        times.append(time.monotonic() - now)
        now += times[-1]
    used = server.cpu_seconds() - before
    quantile = statistics.quantiles(times, n=100, method="inclusive")
    p50, p95, p99 = (round(quantile[percent - 1] * 1e6) for percent in (50, 95, 99))
    return {"reports": len(times), "seconds": now - begin, "p50_us": p50, "p95_us": p95, "p99_us": p99, "cpu_seconds": used}


def line(name, clients, run):
    hour = run["reports"] / run["seconds"] * 3600
    cpu = run["cpu_seconds"] / run["reports"] * 1e6 if "cpu_seconds" in run else run["server_cpu_us_per_report"]
    millis = " | ".join(f"{run[f'p{percent}_us'] / 1000:.2f}" for percent in (50, 95, 99))
    print(f"| {name} | {clients} | {hour / 1e6:.2f} M | {millis} | {cpu:.0f} µs |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stoa", required=True, help="the binary")
    parser.add_argument("--driver", required=True, help="the jar of Hive's JDBC driver")
    parser.add_argument("--warehouse", type=pathlib.Path, help="kept from run to run; by default a temporary one")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--accounts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=20150101)
    parser.add_argument("--clients", type=lambda text: [int(part) for part in text.split(",")], default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--warm-up", type=float, default=5)
    parser.add_argument("--set", action="append", default=["stoa.result_reuse=off"], help="a setting of each connection")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoa-hive-bench.") as scratch:
        options.warehouse = options.warehouse or pathlib.Path(scratch) / "warehouse"
        options.classes = scratch
        subprocess.run(["javac", "-d", scratch, HERE / "HiveReports.java"], check=True)
        stoa_server.generate(options, options.warehouse)
        process, server, port = serve(options)
        try:
            file = pathlib.Path(scratch) / "reports.sql"
            reports = statements(options)
            file.write_text("\n".join(reports))
            check(server, port, reports)
            print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", file=sys.stderr)
            print("| over | clients | reports/hour | p50 ms | p95 ms | p99 ms | server CPU per report |")
            print("|---|---|---|---|---|---|---|")
            for clients in options.clients:
                for mode in ("prepared", "simple"):
                    more = ["--mode", mode, "--duration", f"{options.seconds}s"]
                    line(f"PostgreSQL, {mode}", clients, stoa_server.bench_report(options, server, clients, more))
                line("HiveServer2, JDBC", clients, by_jdbc(server, port, options, clients, file))
                share, total = short_path(server)
                print(f"short path: {share:.1%} of the last {total}", file=sys.stderr)
            line("HiveServer2, PyHive", 1, by_pyhive(server, port, options, reports))
            share, total = short_path(server)
            print(f"short path: {share:.1%} of the last {total}", file=sys.stderr)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
