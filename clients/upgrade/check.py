"""Starts the server of today on states of earlier versions: check.py BINARY

Everything has to be there, with the answers of then; it can be written; and tables and log are sound afterwards.
"""

import json
import sys
import tarfile
import traceback

from state import ANSWERS, STATES, Server, command, place


def check(binary, archive):
    with place() as directory:
        with tarfile.open(archive) as state:
            state.extractall(directory, filter="data")
        expected = json.loads((directory / ANSWERS).read_text())["answers"]
        # Once with the rows of the killed server in the log, once with what the first start made of them.
        for start in ("after the kill", "after a clean stop"):
            server = Server(binary)
            answers = server.answers()
            differing = {question: (answer, answers.get(question)) for question, answer in expected.items() if answers.get(question) != answer}
            assert not differing, f"{start}: expected and given: {json.dumps(differing, indent=1, ensure_ascii=False)}"
            server.end()
        tables = json.loads(command(binary, "table", "check", "--json"))
        assert tables, "no table was checked"
        # It goes on from there.
        server = Server(binary)
        before = server.ask("boss", "SELECT max(id) FROM counted")[0][0]
        server.do("INSERT INTO counted (word) VALUES ('today')")
        [[id, word]] = server.ask("boss", "SELECT id, word FROM counted ORDER BY id DESC LIMIT 1")
        assert word == "today" and int(id) > int(before), "numbers are not given out twice"
        server.do("ALTER TABLE sales.orders ADD COLUMN today int")
        server.do("UPDATE sales.orders SET today = 1 WHERE id < 10")
        server.do("COMPACT TABLE sales.orders FULL")
        assert server.ask("boss", "SELECT count(*), sum(today) FROM sales.orders") == [[192, 10]]
        server.do("GRANT SELECT ON late TO ann")
        assert server.ask("ann", "SELECT count(*) FROM late") == [[3]]
        server.end()
        # A backup and another place: what an old version wrote can be moved, too.
        command(binary, "backup", "backup")
        command(binary, "restore", "backup", "--warehouse", "restored")
        rows = command(binary, "sql", "--warehouse", "restored", "--format", "csv", "--no-header", "-c", "SELECT count(*), sum(id) FROM sales.orders")
        expected_sum = sum(id for id in range(200) if not 100 <= id <= 109) + 1000 + 1001
        assert rows.strip() == f"192,{expected_sum}", rows


def main(binary):
    failed = 0
    archives = sorted(STATES.glob("*.tar.gz"))
    for archive in archives:
        try:
            check(binary, archive)
            print(f"ok      the state of {archive.name.removesuffix('.tar.gz')}")
        except Exception:
            failed += 1
            print(f"FAILED  the state of {archive.name.removesuffix('.tar.gz')}\n{traceback.format_exc()}")
    print(f"{len(archives) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not archives else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
