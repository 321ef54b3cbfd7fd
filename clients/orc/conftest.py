"""Files that stoa-orc writes, and what other readers have to say of them.

`written`   files of all types with the tables they were made from
`to_arrow`  files as stoa-orc reads them
`orc_tools` ORC Java's command line tools
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from tables import CASES, OPTIONS, table

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
EXAMPLES = Path(os.environ["STOA_ORC_EXAMPLES"])
JAR = os.environ["STOA_ORC_TOOLS_JAR"]


@dataclass
class Written:
    name: str
    options: list
    table: pa.Table
    path: Path

    @property
    def stride(self):
        given = dict(option.split("=", 1) for option in self.options)
        return int(given.get("stride", 10_000))


def write(table, options, path, batch_rows=8192):
    """Writes a table with stoa-orc."""
    source = path.with_suffix(".source")
    with pa.ipc.new_stream(source, table.schema) as sink:
        sink.write_table(table, max_chunksize=batch_rows)
    done = subprocess.run([EXAMPLES / "write_local", *options, source, path], capture_output=True, text=True)
    assert done.returncode == 0, f"{path.name}: {done.stderr}"
    source.unlink()


@pytest.fixture(scope="session")
def scratch(tmp_path_factory):
    return Path(os.environ.get("STOA_SCRATCH") or tmp_path_factory.mktemp("orc"))


@pytest.fixture(scope="session")
def written(scratch):
    """Every size and pattern of NULLs with some options, and one with all of them."""
    folder = scratch / "written"
    folder.mkdir(exist_ok=True)
    files = []
    for rows, pattern in CASES:
        content = table(rows, pattern)
        every = (rows, pattern) == (20_001, "some")
        sets = OPTIONS if every else [OPTIONS[len(files) % len(OPTIONS)]]
        for options in sets:
            path = folder / f"{len(files):02}-{rows}-{pattern}.orc"
            write(content, options, path)
            files.append(Written(path.stem, options, content, path))
    return files


@pytest.fixture(scope="session")
def to_arrow(scratch):
    """Reads files with stoa-orc: tables by path, and what was said of those that can't be read."""

    def read(paths, folder):
        folder = scratch / folder
        folder.mkdir(exist_ok=True)
        done = subprocess.run([EXAMPLES / "to_arrow", folder, *paths], capture_output=True, text=True)
        assert not done.stderr, done.stderr
        tables = {}
        for path in paths:
            arrow = folder / (path.stem + ".arrow")
            if arrow.exists():
                with pa.ipc.open_stream(arrow) as source:
                    tables[path] = source.read_all()
        return tables, done.stdout

    return read


@pytest.fixture(scope="session")
def orc_tools():
    """Runs ORC Java's tools, or a Java program beside this file, in one JVM for all files."""

    def run(*arguments, zone="UTC"):
        java = ["java", f"-Duser.timezone={zone}", "-Dfile.encoding=UTF-8", "-XX:+UseSerialGC"]
        if str(arguments[0]).endswith(".java"):
            command = [*java, "-cp", JAR, HERE / arguments[0], *arguments[1:]]
        else:
            command = [*java, "-jar", JAR, *arguments]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == 0, f"{arguments}: {done.stderr[-3000:]}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def corpus():
    """ORC's own example files, if they are beside the checkout, and the small ones in the tree."""
    folders = [REPOSITORY / "crates/stoa-orc/tests/data", REPOSITORY.parent / "shared" / "orc-corpus"]
    return sorted(path for folder in folders if folder.is_dir() for path in folder.glob("*.orc"))
