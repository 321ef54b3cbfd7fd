"""The wheel: the binary on the PATH, and the server that a program starts."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import VERSIONS, VISITS, needs, run

pytestmark = needs("wheel")


@pytest.fixture(scope="module")
def venv(packages, tmp_path_factory):
    """An environment with nothing but the first version."""
    place = tmp_path_factory.mktemp("wheel") / "venv"
    run(sys.executable, "-m", "venv", place)
    run(place / "bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", packages["wheel"][0])
    return place


@pytest.fixture
def python(venv, tmp_path):
    """Runs a Python program in it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STOA_")}
    environment["PATH"] = f"{venv}/bin:{environment['PATH']}"
    (tmp_path / "visits.csv").write_text(VISITS)

    def call(program, **options):
        return run(venv / "bin/python", "-c", program, cwd=tmp_path, env=environment, **options)

    call.environment = environment
    return call


def test_the_binary_is_on_the_path(python):
    said = python("import subprocess; print(subprocess.check_output(['stoa', '--version'], text=True))")
    assert said.startswith("stoa 0.")


def test_a_server_answers_and_leaves_nothing_behind(python, tmp_path):
    said = python(
        """
import os, stoa
with stoa.Server() as server:
    server.load("visits.csv", into="visits", order_by="account, day")
    print(server.query("SELECT account, count(*) AS n FROM visits GROUP BY account ORDER BY account"))
    print(server.query("CREATE TABLE other (id bigint)"), os.path.isdir(server.warehouse))
    print(server.dsn == f"postgresql://stoa@127.0.0.1:{server.pg_port}/stoa", server)
print(server.is_running, os.path.exists(server.warehouse), server)
server.stop()
"""
    )
    lines = said.splitlines()
    assert lines[0] == "[{'account': 7, 'n': 2}, {'account': 8, 'n': 1}]"
    assert lines[1] == "[] True"
    assert lines[2].startswith("True <stoa.Server of ") and " on http://127.0.0.1:" in lines[2]
    assert lines[3].startswith("False False <stoa.Server of ") and lines[3].endswith(" stopped>")
    assert os.listdir(tmp_path) == ["visits.csv"]


def test_other_clients_reach_it_and_data_in_a_directory_stays(python, tmp_path):
    psycopg = pytest.importorskip("psycopg")
    script = """
import sys, stoa
server = stoa.Server("data")
print(server.dsn, flush=True)
sys.stdin.readline()
server.stop()
"""
    environment = python.environment
    with subprocess.Popen(
        [environment["PATH"].split(":")[0] + "/python", "-c", script],
        cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as program:
        with psycopg.connect(program.stdout.readline().strip(), autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id bigint)")
            connection.execute("INSERT INTO t VALUES (1), (2)")
        program.communicate("\n", timeout=60)
    assert program.returncode == 0
    said = python("import stoa\nwith stoa.Server('data') as s: print(s.query('SELECT sum(id) AS s FROM t'))")
    assert said.strip() == "[{'s': 3}]"


def test_errors_say_what_stoa_said(python):
    said = python(
        """
import stoa
with stoa.Server(memory_limit="512MiB") as server:
    for call in (lambda: server.query("SELECT nothing"), lambda: server.load("absent.csv", into="t")):
        try:
            call()
        except stoa.StoaError as error:
            print(error.sqlstate, str(error).splitlines()[0])
try:
    stoa.Server(memory_limit="much")
except stoa.StoaError as error:
    print(" ".join(str(error).splitlines()[:2]))
"""
    )
    lines = said.splitlines()
    assert lines[0].startswith("42703 ") and "nothing" in lines[0]
    assert "absent.csv" in lines[1]
    assert "did not start (exit code 2)" in lines[2] and "memory_limit" in lines[2]


def test_the_server_ends_with_a_program_that_is_killed(python, tmp_path):
    script = "import stoa, time; print(stoa.Server('data').pid, flush=True); time.sleep(600)"
    environment = python.environment
    with subprocess.Popen(
        [environment["PATH"].split(":")[0] + "/python", "-c", script],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True,
    ) as program:
        server = int(program.stdout.readline())
        os.kill(server, 0)
        program.send_signal(signal.SIGKILL)
    end = time.monotonic() + 60
    while is_alive(server):
        assert time.monotonic() < end, "the server still runs"
        time.sleep(0.05)


def is_alive(pid):
    """Whether a process is there and no zombie that nobody has waited for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_newer_version_takes_its_place_and_is_removed(venv, packages):
    """Last in this file: the environment is empty afterwards."""
    pip = [venv / "bin/pip", "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-index", "--upgrade", packages["wheel"][1])
    assert f"Version: {VERSIONS[1]}" in run(*pip, "show", "stoa-server")
    run(venv / "bin/stoa", "--version")
    run(*pip, "uninstall", "--quiet", "--yes", "stoa-server")
    assert not (venv / "bin/stoa").exists()
