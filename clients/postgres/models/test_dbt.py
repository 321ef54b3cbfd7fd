"""dbt-postgres: seed, view, table, incremental model, snapshot and tests, on the first run and on later ones."""

import os
import pathlib
import shutil
import subprocess
import sys

import psycopg
import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def conn():
    with psycopg.connect(f"host={os.environ['PGHOST']} port={os.environ['PGPORT']} user=stoa", autocommit=True) as made:
        made.execute("DROP SCHEMA IF EXISTS dbt CASCADE")
        yield made
        made.execute("DROP SCHEMA IF EXISTS dbt CASCADE")


@pytest.fixture
def build(tmp_path):
    """Builds the project in a folder of its own, with further rows in the seed."""
    project = tmp_path / "project"
    shutil.copytree(HERE / "project", project)

    def build(*rows):
        with (project / "seeds" / "ads.csv").open("a") as seed:
            seed.writelines(f"{row}\n" for row in rows)
        command = [str(pathlib.Path(sys.executable).parent / "dbt"), "--no-use-colors", "build", "--profiles-dir", "."]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-4000:]
        assert "PASS=7 WARN=0 ERROR=0 SKIP=0" in done.stdout, done.stdout[-4000:]

    return build


def test_a_project_is_built_again_and_again(conn, build):
    build()
    assert conn.execute("SELECT name, clicks FROM dbt.sums ORDER BY name").fetchall() == [("a", 4), ("b", 2)]
    assert conn.execute("SELECT count(*) FROM dbt.clicks").fetchone() == (3,)
    assert conn.execute("SELECT count(*), count(dbt_valid_to) FROM dbt.history").fetchone() == (2, 0)

    build("b,5,2026-01-04")
    assert conn.execute("SELECT name, clicks FROM dbt.sums ORDER BY name").fetchall() == [("a", 4), ("b", 7)]
    # Rows since the last day of the table, in the place of those of their key.
    latest = conn.execute("SELECT name, day::text, clicks FROM dbt.latest ORDER BY name").fetchall()
    assert latest == [("a", "2026-01-03", 3), ("b", "2026-01-04", 5)]
    # What changed has an end, and a row as it is now.
    history = "SELECT name, clicks, dbt_valid_to IS NULL FROM dbt.history ORDER BY name, clicks"
    assert conn.execute(history).fetchall() == [("a", 4, True), ("b", 2, False), ("b", 7, True)]

    build()
    assert conn.execute(history).fetchall() == [("a", 4, True), ("b", 2, False), ("b", 7, True)]
    left = conn.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'dbt' ORDER BY 1")
    assert [name for (name,) in left] == ["ads", "clicks", "history", "latest", "sums"]
