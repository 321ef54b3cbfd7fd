"""Several processes attack one server, each with seeds of its own, until enough is done."""

import multiprocessing
import multiprocessing.connection
import os
import re
import time
import traceback
from collections import Counter

from conftest import number

PROCESSES = number("PROCESSES", os.cpu_count() or 2)
# Seconds between lines about the progress; each comes with a report from the server.
SAY_SECONDS = 10
# What differs between two defects that are the same.
DETAILS = re.compile(r"\d+|\"[^\"]*\"|'[^']*'")


def crowd(victim, say, make, first, count, last=None, chunk=50):
    """Runs `make().take(seeds)` in several processes, on chunks of the seeds from `first` on.

    `take` returns what was done, by name, and a list of defects, each an error and where it was. The seeds
    end before `last`, or once the sum of what is called "done" is `count`. Returns the sums and a text about
    all defects, empty if there are none; fails at once where a process fails or the server dies. `say`
    prints a line.
    """
    context = multiprocessing.get_context("fork")
    turn, ended = context.Value("q", first), context.Event()
    pipes, processes = [], []
    for _ in range(PROCESSES):
        pipe, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_take_turns, args=(make, turn, last, chunk, ended, theirs), daemon=True)
        process.start()
        theirs.close()
        pipes.append(pipe)
        processes.append(process)
    try:
        return _collect(victim, say, pipes, count, ended)
    finally:
        ended.set()
        # Those that still wait for an answer are not waited for.
        until = time.monotonic() + 5
        for process in processes:
            process.join(max(until - time.monotonic(), 0))
            process.kill()


def _take_turns(make, turn, last, chunk, ended, pipe):
    try:
        worker = make()
        while not ended.is_set():
            with turn.get_lock():
                first = turn.value
                turn.value += chunk
            seeds = range(first, first + chunk if last is None else min(first + chunk, last))
            if not seeds:
                break
            pipe.send(worker.take(seeds))
    except BaseException:  # noqa: BLE001, of which the other process is told
        pipe.send(traceback.format_exc())
    pipe.close()


def _collect(victim, say, pipes, count, ended):
    sums, failures = Counter(), []
    # Of defects that are the same, how many, and the first.
    counts, firsts = Counter(), {}
    began = said = time.monotonic()
    while pipes:
        for pipe in multiprocessing.connection.wait(pipes, SAY_SECONDS):
            try:
                told = pipe.recv()
            except EOFError:
                pipes.remove(pipe)
                continue
            if isinstance(told, str):
                failures.append(told)
                ended.set()
                continue
            done, found = told
            sums.update(done)
            for error, where in found:
                kind = DETAILS.sub("_", error)[:120]
                counts[kind] += 1
                if counts[kind] == 1:
                    firsts[kind] = f"{where}: {error}"
                    say(firsts[kind])
        if sums["done"] >= count:
            ended.set()
        if time.monotonic() >= said + SAY_SECONDS:
            assert victim.process.poll() is None, f"the server died: {failures} {victim.tail()}"
            # What is beyond the bound fails at the end; this is for the machine's sake.
            assert victim.memory("VmRSS") < 4 * victim.bound(), f"memory grows: {progress(victim, sums, 1)}"
            said = time.monotonic()
            say(f"{progress(victim, sums, said - began)}, {counts.total()} defects")
            victim.report()
    assert not failures, "\n".join([*failures, victim.tail()])
    say(f"ended: {progress(victim, sums, time.monotonic() - began)}, {counts.total()} defects")
    return sums, "\n".join(f"{count} times, first {firsts[kind]}" for kind, count in counts.most_common())


def progress(victim, sums, seconds):
    told = ", ".join(f"{name} {count}" for name, count in sorted(sums.items()))
    memory = [f"{what} {victim.memory(what) >> 20} MiB" for what in ("VmRSS", "VmHWM")]
    return f"{seconds:.0f} s, {told}, {sums['done'] / max(seconds, 0.001):.0f} a second, {', '.join(memory)}"
