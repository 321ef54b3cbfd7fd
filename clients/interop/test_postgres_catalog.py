"""One catalog in PostgreSQL: Stoa, Spark and PyIceberg read and write the same tables through it."""

import json
import sys
from pathlib import Path

import pyarrow
import pytest
from engines import rows_of

sys.path.append(str(Path(__file__).resolve().parents[1]))
import real_postgres  # noqa: E402


@pytest.fixture(scope="module")
def port():
    if real_postgres.programs() is None:
        pytest.skip("no PostgreSQL server here")
    with real_postgres.running() as port:
        yield port


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def ask(stoa, port, home):
    """Runs statements with the catalog in PostgreSQL; gives the rows of the last."""

    def run(*statements):
        place = ["--warehouse", str(home), "--catalog", f"postgres://stoa@127.0.0.1:{port}/stoa"]
        arguments = [part for statement in statements for part in ("-c", statement)]
        out = stoa.run("sql", *place, "--format", "json", "--quiet", "--stop-on-error", *arguments)
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    run("CREATE TABLE t (a int, b text)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')", "FLUSH TABLE t")
    return run


def test_pyiceberg_reads_and_writes(ask, port, home):
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"postgresql+psycopg2://stoa@127.0.0.1:{port}/stoa"
    catalog = SqlCatalog("stoa", uri=uri, warehouse=home.as_uri())
    found = catalog.load_table("public.t").scan().to_arrow().sort_by("a").to_pylist()
    assert found[:2] == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    table = catalog.create_table("public.by_python", schema=pyarrow.schema([("x", pyarrow.int32())]))
    table.append(pyarrow.table({"x": pyarrow.array([1, 2], pyarrow.int32())}))
    assert ask("SELECT x FROM by_python ORDER BY x") == [{"x": 1}, {"x": 2}]


def test_spark_reads_and_writes(ask, port, home, spark):
    # A session of its own has its own catalogs; the name must be that of Stoa's rows.
    session = spark.newSession()
    catalog = "spark.sql.catalog.stoa"
    session.conf.set(f"{catalog}.uri", f"jdbc:postgresql://127.0.0.1:{port}/stoa")
    session.conf.set(f"{catalog}.jdbc.user", "stoa")
    session.conf.set(f"{catalog}.warehouse", home.as_uri())
    found = rows_of(session.sql("SELECT a, b FROM stoa.public.t ORDER BY a"))
    assert found[:2] == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    session.sql("INSERT INTO stoa.public.t VALUES (10, 'spark')")
    assert ask("SELECT b FROM t WHERE a = 10") == [{"b": "spark"}]
    session.sql("CREATE TABLE stoa.public.by_spark (y int) USING iceberg")
    session.sql("INSERT INTO stoa.public.by_spark VALUES (5)")
    assert ask("SELECT y FROM by_spark") == [{"y": 5}]
