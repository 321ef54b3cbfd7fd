"""Makes a state with a version of Stoa, for later versions to read: make.py BINARY NAME

Writes states/NAME.tar.gz: warehouse, catalog, settings, a commit log with rows that are in no file, and the answers that
this version gave before it was killed. Make one when a version is released, and never again: what users have does not
change either.
"""

import json
import signal
import sys
import tarfile

from state import ANSWERS, CELLS, LATE, LATE_CELLS, MADE, NEWER, PASSWORD, SETTINGS, STATES, Server, command, place


def make(binary, name):
    with place() as directory:
        (directory / "stoa.toml").write_text(SETTINGS)
        command(binary, "sql", "--warehouse", "warehouse", "-c", f"CREATE USER boss SUPERUSER PASSWORD '{PASSWORD}'")
        server = Server(binary)
        for statement in MADE:
            server.do(statement)
        if server.ask("boss", NEWER[0]) != "42601":
            for statement in NEWER[1:]:
                server.do(statement)
        for statement in CELLS:
            said = server.hql(statement)
            assert "error" not in said.lower(), f"{statement}: {said}"
        # Everything so far into files, so that the log of the next start holds only what follows.
        server.end()
        server = Server(binary)
        for statement in LATE:
            server.do(statement)
        for statement in LATE_CELLS:
            said = server.hql(statement)
            assert "error" not in said.lower(), f"{statement}: {said}"
        answers = server.answers()
        server.end(signal.SIGKILL)
        # What the answers must be, by whatever version.
        assert answers["boss: SELECT n, s FROM late ORDER BY n"] == [[1, "one"], [2, None], [3, "drei ü"]], answers
        assert answers["ann: SELECT secret FROM sales.orders"] == "42501"
        assert answers["gone: SELECT 1"] == "28P01", answers["gone: SELECT 1"]
        (directory / ANSWERS).write_text(json.dumps({"version": command(binary, "--version").strip(), "answers": answers}, indent=1, ensure_ascii=False))
        STATES.mkdir(exist_ok=True)
        with tarfile.open(STATES / f"{name}.tar.gz", "w:gz", compresslevel=9) as archive:
            archive.add(directory, arcname=".", filter=plain)


def plain(entry):
    """Nobody's, and of no time in particular."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    make(*sys.argv[1:])
