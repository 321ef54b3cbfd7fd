"""Clients in closed loops: each asks, waits for the whole answer, and asks again.

Out come reports per second, reports per second of CPU time, and the percentiles of what clients waited.
"""

import statistics
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from engines import ENGINES, Chdb, DuckDb

PERCENTILES = (50, 95, 99)


@dataclass
class Run:
    """What one client saw."""

    seconds: float
    cpu_seconds: float
    took_ms: list


def loop(engine, ask, asked, warm_up, seconds):
    """Goes round in `asked`; nothing counts before `warm_up` seconds have passed."""
    number = 0
    until = time.monotonic() + warm_up
    while time.monotonic() < until:
        ask(asked[number % len(asked)])
        number += 1
    took, cpu, begin = [], engine.cpu_seconds(), time.monotonic()
    until = begin + seconds
    while (now := time.monotonic()) < until:
        ask(asked[number % len(asked)])
        took.append((time.monotonic() - now) * 1000)
        number += 1
    lasted = time.monotonic() - begin
    return Run(lasted, engine.cpu_seconds() - cpu, took)


def process(name, place, *rest):
    engine = ENGINES[name](place)
    return loop(engine, engine.client(), *rest)


def measure(name, place, asked, warm_up, seconds):
    """Figures of one engine; `asked` has the reports of each client."""
    clients = len(asked)
    rest = (asked, [warm_up] * clients, [seconds] * clients)
    engine = ENGINES[name]
    if engine is DuckDb:
        database = engine(place)
        asks = [database.client() for _ in asked]
        with ThreadPoolExecutor(clients) as pool:
            runs = list(pool.map(loop, [database] * clients, asks, *rest))
    else:
        places = engine.places(place, clients)
        with ProcessPoolExecutor(clients, mp_context=get_context("spawn")) as pool:
            runs = list(pool.map(process, [name] * clients, places, *rest))
    cpu = [run.cpu_seconds for run in runs]
    # Where clients share what answers them, each has seen the CPU time of all.
    return figures(runs, sum(cpu) if engine is Chdb else statistics.mean(cpu))


def figures(runs, cpu_seconds):
    took = sorted(ms for run in runs for ms in run.took_ms)
    return {
        "per_second": sum(len(run.took_ms) / run.seconds for run in runs),
        "per_cpu_second": len(took) / cpu_seconds,
        **{f"p{part}_ms": took[min(len(took) * part // 100, len(took) - 1)] for part in PERCENTILES},
    }
