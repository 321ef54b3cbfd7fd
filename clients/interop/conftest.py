"""The engines that share one warehouse, as fixtures.

`stoa`     Stoa, embedded and through the server that scripts/test.sh started
`spark`    a Spark session whose catalog `stoa` is the warehouse's catalog database
`iceberg`  the same through PyIceberg
`name`     a table name of its own for each check
"""

import os
import re
import shutil
from pathlib import Path

import pytest
from engines import Stoa

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def warehouse():
    path = Path(os.environ["STOA_WAREHOUSE"])
    assert path.is_absolute(), "STOA_WAREHOUSE has to be an absolute path"
    return path


@pytest.fixture(scope="session")
def stoa(warehouse):
    return Stoa(os.environ["STOA_BIN"], str(warehouse), os.environ["STOA_HTTP_PORT"])


@pytest.fixture(scope="session")
def spark(stoa, warehouse):
    if shutil.which("java") is None:
        pytest.skip("no Java here")
    from pyspark.sql import SparkSession

    jars = sorted(str(jar) for jar in Path(os.environ["STOA_INTEROP_JARS"]).glob("*.jar"))
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("stoa-interop")
        .config("spark.jars", ",".join(jars))
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.stoa", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.stoa.type", "jdbc")
        .config("spark.sql.catalog.stoa.uri", f"jdbc:sqlite:file:{warehouse}/catalog.db")
        .config("spark.sql.catalog.stoa.warehouse", warehouse.as_uri())
        .config("spark.sql.catalog.stoa.jdbc.schema-version", "V1")
        # Looking whether its tables are there, Iceberg leaves a statement open that pins what the
        # session sees of the catalog to that moment; Stoa has made the tables.
        .config("spark.sql.catalog.stoa.jdbc.init-catalog-tables", "false")
        # Iceberg caches table metadata; here others commit between two statements.
        .config("spark.sql.catalog.stoa.cache-enabled", "false")
        .config("spark.sql.catalog.stoa.table-default.write.format.default", "orc")
    )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def iceberg(stoa, warehouse):
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("stoa", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=warehouse.as_uri())


@pytest.fixture
def name(request):
    return re.sub(r"\W+", "_", request.node.name.removeprefix("test_")).strip("_").lower()


@pytest.fixture(scope="session")
def shared_data():
    """The folder with public data, which may be beside the checkout or not."""
    for folder in (os.environ.get("STOA_DATA"), REPOSITORY.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    pytest.skip("no folder with public data here (../shared/data or $STOA_DATA)")
