"""Scripts over HiveServer2: who may run them, and words counted by two of them as SQL counts them.

STOA_TRANSFORM_BYTES is the size of the text whose words are counted.
"""

import os
import pathlib
import threading
import time

import pytest
from access_server import PASSWORD, SUPERUSER, Server
from conftest import connect, rows
from pyhive.exc import OperationalError

BYTES = int(os.environ.get("STOA_TRANSFORM_BYTES", 1_000_000))

MAPPER = """#!/usr/bin/env python3
import sys
for line in sys.stdin:
    for word in line.rstrip("\\n").split(" "):
        print(word, 1, sep="\\t")
"""
REDUCER = """#!/usr/bin/env python3
import itertools, sys
rows = (line.rstrip("\\n").split("\\t") for line in sys.stdin)
for word, group in itertools.groupby(rows, lambda row: row[0]):
    print(word, sum(int(row[1]) for row in group), sep="\\t")
"""
# Reads all, and ends only if it is killed; so does a process that it starts.
NAP_SECONDS = 36_017
ENDLESS = f"""#!/usr/bin/env python3
import subprocess, sys, time
child = subprocess.Popen(["sleep", "{NAP_SECONDS}"])
for line in sys.stdin:
    pass
time.sleep({NAP_SECONDS})
"""


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    directory = tmp_path_factory.mktemp("transform")
    scripts = directory / "scripts"
    scripts.mkdir()
    for name, text in {"map.py": MAPPER, "reduce.py": REDUCER, "endless.py": ENDLESS}.items():
        (scripts / name).write_text(text)
        (scripts / name).chmod(0o755)
    server = Server(directory, "--scripts", str(scripts), "--script-roles", "etl", "--file-access", str(directory))
    server.scripts, server.directory = scripts, directory
    yield server
    server.stop()


@pytest.fixture
def cursor(scripted):
    connection = connect(scripted.hive_port, "ldap", "hive", username=SUPERUSER, password=PASSWORD)
    yield connection.cursor()
    connection.close()


def write_lines(path):
    """Lines of words, some of them much more frequent than others; `BYTES` bytes."""
    written, number = 0, 0
    with open(path, "w") as file:
        file.write("line\n")
        while written < BYTES:
            words = [f"w{number % 7}", f"w{number * number % 1009}", f"w{number * 31 % 20011}", f"w{number % 97}"]
            written += file.write(" ".join(words) + "\n")
            number += 1


def server_memory_mib(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))


def test_words_are_counted_as_sql_counts_them(scripted, cursor):
    cursor.execute("CREATE TABLE lines (line STRING)")
    write_lines(scripted.directory / "lines.csv")
    cursor.execute(f"LOAD DATA LOCAL INPATH '{scripted.directory}/lines.csv' INTO TABLE lines")
    began = time.monotonic()
    by_scripts = rows(
        cursor,
        "FROM (FROM lines MAP line USING 'map.py' AS (word STRING, n INT) CLUSTER BY word) m "
        "REDUCE m.word, m.n USING 'reduce.py' AS (word STRING, n BIGINT)",
    )
    seconds = time.monotonic() - began
    by_sql = rows(
        cursor,
        "SELECT word, count(*) FROM lines LATERAL VIEW explode(split(line, ' ')) t AS word GROUP BY word",
    )
    print(f"{BYTES} bytes: {seconds:.1f} s, server's peak {server_memory_mib(scripted)} MiB")
    assert len(by_sql) > 1000
    assert sorted(by_scripts) == sorted(by_sql)


def processes_of(scripts):
    """Command lines of processes that run a script of the folder, or were started by `endless.py`."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = place.read_bytes().decode(errors="replace").replace("\0", " ").strip()
        except OSError:
            # It has ended.
            continue
        if str(scripts) in command and "server" not in command or command == f"sleep {NAP_SECONDS}":
            found.append(command)
    return found


def until(what, is_so, seconds=60):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.05)


def killed(scripted, cursor, sql, is_begun):
    """Runs a statement in a thread, kills it once it is begun, and waits until none of its processes is left."""
    failed = []

    def run():
        connection = connect(scripted.hive_port, "ldap", "hive", username=SUPERUSER, password=PASSWORD)
        try:
            rows(connection.cursor(), sql)
        except OperationalError as error:
            failed.append(str(error))
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    until("its programs run", is_begun)
    cursor.execute("SET stoa.dialect=postgres")
    [[query]] = rows(cursor, "SELECT id FROM system.queries WHERE state = 'running' AND sql LIKE '%hive_transform%' AND sql NOT LIKE '%system.queries%'")
    cursor.execute(f"KILL QUERY {query}")
    cursor.execute("SET stoa.dialect=hive")
    thread.join(60)
    until("its processes end", lambda: not processes_of(scripted.scripts))
    assert failed and "cancel" in failed[0], failed


def test_a_killed_query_leaves_no_process(scripted, cursor):
    count = lambda: len(processes_of(scripted.scripts))
    # The script and the process that it has started.
    killed(scripted, cursor, "SELECT TRANSFORM ('a b') USING 'endless.py' AS (word STRING)", lambda: count() >= 2)
    # In the middle of rows, with processes of two steps.
    sql = (
        "FROM (FROM lines MAP line USING 'map.py' AS (word STRING, n INT) CLUSTER BY word) m "
        "REDUCE m.word, m.n USING 'endless.py' AS (word STRING)"
    )
    killed(scripted, cursor, sql, lambda: count() >= 2)


def test_files_are_those_of_the_session(scripted, cursor):
    cursor.execute(f"ADD FILE {scripted.scripts}/map.py")
    assert rows(cursor, "LIST FILES") == [(f"{scripted.scripts}/map.py",)]
    cursor.execute("DELETE FILE map.py")
    assert rows(cursor, "LIST FILES") == []


def test_a_role_needs_to_be_named(scripted, cursor):
    cursor.execute("SET stoa.dialect=postgres")
    for statement in ("CREATE USER ann PASSWORD 'pencil'", "CREATE ROLE etl"):
        cursor.execute(statement)
    cursor.execute("SET stoa.dialect=hive")
    sql = "SELECT TRANSFORM ('a b') USING 'map.py' AS (word STRING, n INT)"
    connection = connect(scripted.hive_port, "ldap", "hive", username="ann", password="pencil")
    with pytest.raises(OperationalError, match="may not run scripts"):
        rows(connection.cursor(), sql)
    cursor.execute("GRANT etl TO USER ann")
    assert rows(connection.cursor(), sql) == [("a", 1), ("b", 1)]
    with pytest.raises(OperationalError, match="may not be run"):
        rows(connection.cursor(), "SELECT TRANSFORM (1) USING 'cat' AS (a INT)")
    connection.close()
