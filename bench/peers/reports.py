#!/usr/bin/env python3
"""Reports: Stoa beside DuckDB and ClickHouse (chdb), on the same rows in the same run, as ratios.

`run.sh` starts it in an environment that has what it needs; README.md says what is measured.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import clock
from engines import ENGINES
from stoa_server import bench_report, export, generate, serve
from workload import WORKLOADS, Picker, literal

PEERS = [name for name in ENGINES if name != "stoa"]
PICKS = 20_000  # reports per client that are made before the clock starts; then they begin anew
REPORTS_COMPARED = 50
STATEMENTS_COMPARED = 20


def say(text):
    print(text, file=sys.stderr, flush=True)


def load(options, name, directory, parquet):
    """Brings the rows into a peer, unless they are there; what is half made is made anew."""
    import pyarrow.parquet as pq

    if (directory / "loaded").exists():
        return
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    begin = time.monotonic()
    found = ENGINES[name](directory).load(parquet, pq.read_schema(parquet))
    if found != options.rows:
        sys.exit(f"{name} has {found} rows, not {options.rows}")
    say(f"{name}: took in {found:,} rows in {time.monotonic() - begin:.1f} s")
    (directory / "loaded").touch()


def reports(options, workload, client, number):
    picker = Picker(options.rows, options.accounts, options.seed, client)
    return [picker.pick(workload) for _ in range(number)]


def answers(options, name, place):
    """Number and hash of the sorted rows of each of the first reports, for every workload."""
    engine = ENGINES[name](place)
    ask = engine.client()

    def answer(report):
        rows = sorted(engine.rows(ask(report)))
        text = "\n".join(",".join(map(str, row)) for row in rows)
        return len(rows), hashlib.sha256(text.encode()).hexdigest()[:16]

    return {
        workload: [answer(report) for report in reports(options, workload, 0, REPORTS_COMPARED)]
        for workload in options.workloads
    }


def compare_answers(options, found):
    """Ends the run at the first report that two engines answer differently."""
    for workload in options.workloads:
        asked = reports(options, workload, 0, REPORTS_COMPARED)
        for number, report in enumerate(asked):
            said = {name: tuple(answered[workload][number]) for name, answered in found.items()}
            if len(set(said.values())) != 1:
                sys.exit(f"answers differ (rows, hash): {literal(report)}\n{said}")
        rows = sum(rows for rows, _ in found["stoa"][workload])
        say(f"{workload}: {len(asked)} reports with {rows:,} rows are answered alike by {', '.join(found)}")


def compare_statements(options, server):
    """Ends the run unless `stoa bench report` sends what workload.py says."""
    more = ["--reports", str(STATEMENTS_COMPARED), "--warm-up", "0s", "--mode", "simple", "--set", "short_path=off"]
    bench_report(options, server, 1, more)
    wanted = [literal(report) for report in reports(options, "recent", 0, STATEMENTS_COMPARED)]
    if server.recent_statements()[-STATEMENTS_COMPARED:] != wanted:
        sys.exit("stoa bench report sends other statements than workload.py makes")


def measure_stoa(options, server, workload, clients):
    if workload != "recent":
        return measure(options, "stoa", server, workload, clients)
    more = ["--duration", f"{options.seconds}s", "--warm-up", f"{options.warm_up}s"]
    run = bench_report(options, server, clients, more)
    return {
        "per_second": run["reports"] / run["seconds"],
        "per_cpu_second": 1e6 / run["server_cpu_us_per_report"],
        **{f"p{part}_ms": run[f"p{part}_us"] / 1000 for part in clock.PERCENTILES},
    }


def measure(options, name, place, workload, clients):
    asked = [reports(options, workload, client, PICKS) for client in range(clients)]
    return clock.measure(name, place, asked, options.warm_up, options.seconds)


# What is done in a process of its own, so that engines leave each other alone.
TASKS = {
    "load": lambda options, name, place, parquet: load(options, name, Path(place), Path(parquet)),
    "answers": answers,
    "measure": lambda options, name, place, workload, clients: measure(options, name, place, workload, int(clients)),
}


def in_a_process(options, task, *of):
    command = [sys.executable, __file__, "--task", task, *map(str, of)]
    command += [f"--{key}={getattr(options, key)}" for key in ("rows", "accounts", "seed", "seconds")]
    command += [f"--warm-up={options.warm_up}", f"--workloads={','.join(options.workloads)}"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def rounds(options, server, places, workload, clients):
    """Medians over the rounds, in which all take turns."""
    runs = {name: [] for name in ("stoa", *places)}
    for _ in range(options.rounds):
        runs["stoa"].append(measure_stoa(options, server, workload, clients))
        for name, place in places.items():
            runs[name].append(in_a_process(options, "measure", name, place, workload, clients))
    return {name: {key: statistics.median(run[key] for run in of) for key in of[0]} for name, of in runs.items()}


def show_header():
    print(f"{'':40}{'':30}{'Stoa : it':>26}")
    print(
        f"{'workload':9} {'clients':>7} {'engine':7} {'reports/s':>10} {'/CPU s':>8} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8}"
        f"  {'reports/s':>9} {'/CPU s':>8} {'p50':>8} {'p99':>8}"
    )


def show(workload, clients, medians):
    ours = medians["stoa"]
    for name, it in medians.items():
        line = f"{workload:9} {clients:7} {name:7} {it['per_second']:10,.0f} {it['per_cpu_second']:8,.0f}"
        line += "".join(f" {it[f'p{part}_ms']:8.3f}" for part in clock.PERCENTILES)
        if name != "stoa":
            line += f"  {ours['per_second'] / it['per_second']:7.2f} x {ours['per_cpu_second'] / it['per_cpu_second']:6.1f} x"
            line += "".join(f" {ours[key] / it[key]:6.3f} x" for key in ("p50_ms", "p99_ms"))
        print(line, flush=True)


def run(options, directory):
    warehouse, parquet = directory / "stoa", directory / "ad_report.parquet"
    places = {name: directory / name for name in options.peers}
    generate(options, warehouse)
    with serve(options, warehouse) as server:
        if not parquet.exists():
            export(server, parquet)
        for name, place in places.items():
            in_a_process(options, "load", name, place, parquet)
        compare_statements(options, server)
        found = {"stoa": answers(options, "stoa", server)}
        found |= {name: in_a_process(options, "answers", name, place) for name, place in places.items()}
        compare_answers(options, found)
        print(f"{options.rows:,} rows; medians of {options.rounds} rounds of {options.seconds:g} s")
        show_header()
        result = []
        for workload in options.workloads:
            for clients in options.clients:
                medians = rounds(options, server, places, workload, clients)
                show(workload, clients, medians)
                result.append({"workload": workload, "clients": clients, "engines": medians})
    if options.json:
        table = {key: getattr(options, key) for key in ("rows", "accounts", "seed")}
        Path(options.json).write_text(json.dumps({"table": table, "runs": result}, indent=1) + "\n")


def among(known):
    def names(text):
        chosen = text.split(",")
        if unknown := sorted(set(chosen) - set(known)):
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(known)}")
        return chosen

    return names


def parse():
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--stoa", help="the binary (default: the release build, made if need be)")
    add("--rows", type=int, default=10_000_000)
    add("--accounts", type=int, default=100_000)
    add("--seed", type=int, default=20150101)
    add("--clients", type=lambda text: [int(number) for number in text.split(",")], default=sorted({1, cores}), metavar="N,…", help="default: 1, and as many as there are cores")
    add("--workloads", type=among(WORKLOADS), default=list(WORKLOADS), metavar="NAME,…", help=", ".join(WORKLOADS))
    add("--peers", type=among(PEERS), default=PEERS, metavar="NAME,…", help=", ".join(PEERS))
    add("--seconds", type=float, default=5.0, help="how long each is measured")
    add("--warm-up", type=float, default=2.0, help="for how many seconds it is asked before that")
    add("--rounds", type=int, default=3)
    add("--dir", type=Path, help="where tables are made and kept (default: made for this run, then removed)")
    add("--json", metavar="FILE", help="write the figures there, too")
    add("--task", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def build():
    """Makes the release build; gives the binary. `run.sh` has set where it goes."""
    scripts = Path(__file__).resolve().parents[2] / "scripts"
    subprocess.run([scripts / "build.sh"], check=True, stdout=sys.stderr)
    return str(Path(os.environ["CARGO_TARGET_DIR"]) / "release" / "stoa")


def main():
    options = parse()
    if options.task:
        task, *of = options.task
        print(json.dumps(TASKS[task](options, *of)))
        return
    options.stoa = options.stoa or build()
    if options.dir:
        # Another size or seed is another table.
        directory = options.dir / f"ad_report-{options.rows}-{options.accounts}-{options.seed}"
        directory.mkdir(parents=True, exist_ok=True)
        run(options, directory.resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="stoa-peers-") as directory:
            run(options, Path(directory))


if __name__ == "__main__":
    main()
