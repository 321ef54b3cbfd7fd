"""A real Hive 4.0.1 reads the external tables that Stoa writes: text, ORC, Parquet, SequenceFiles, CSV.

Skipped where Hive is not installed: its 400 MB of jars come with the first run of `oracle/run.sh`. The statements and rows
are those of the corpus that Hive's own files are compared with, too (`oracle/files.sh`).
"""

import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
TESTS = HERE.parents[1] / "crates/stoa-query/tests/hiveql"
JARS = pathlib.Path(os.environ["STOA_TOOLS"]) / "hive-oracle/jars"
# Stoa escapes backslashes in files of OpenCSVSerde, which are lost where Hive writes them.
CSV = ("select * from csv order by i", ["1\tsay \"x\"; y\tplain", "2\t\tback\\slash"])


def statements(marks, directory):
    """Those of the corpus with these marks, on files in a directory."""
    for line in (TESTS / "external.txt").read_text().splitlines():
        if line[:2] in {f"{mark} " for mark in marks}:
            yield line[2:].replace("@DIR@", str(directory))


def rows_by_statement(text, row_marks):
    """The rows of each statement; a row of Hive's (H) stands before the one of Stoa's that it replaces."""
    found, statement, replaced = {}, None, False
    for line in text.splitlines():
        mark, rest = line[:1], line[2:]
        if mark in "QSM" and mark:
            statement = rest
            found[statement] = []
        elif mark in "WD":
            statement = None if mark == "W" else statement
        elif statement is None:
            continue
        elif mark == "H" and "H" in row_marks:
            found[statement].append(rest)
            replaced = True
        elif mark == "R" and replaced:
            replaced = False
        elif mark == "R":
            found[statement].append(rest)
        elif mark == "E":
            found[statement].append(f"error: {rest}")
        elif found[statement] and mark != "#":
            # A row with a line break.
            found[statement][-1] += "\n" + line
    return found


@pytest.mark.skipif(not JARS.is_dir(), reason="Hive is not installed: clients/hive/oracle/run.sh fetches it")
def test_hive_reads_what_stoa_writes(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for name in ("raw", "escaped"):
        shutil.copytree(TESTS / "files/external" / name, files / name)
    # Stoa writes; queries are Hive's.
    written = [one for one in statements("WQ", files) if not one.startswith("select")]
    script = tmp_path / "write.sql"
    script.write_text("SET dialect = hive;\n" + "".join(f"{one};\n" for one in written))
    command = [os.environ["STOA_BIN"], "sql", "--warehouse", tmp_path / "warehouse", "--stop-on-error", "-f", script]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    # Hive reads.
    asked = tmp_path / "asked.txt"
    asked.write_text("".join(f"Q {one}\n" for one in statements("SMQ", files)))
    classpath = f"{tmp_path}:{JARS}/*"
    subprocess.run(["javac", "-cp", f"{JARS}/*", "-d", tmp_path, HERE / "oracle/HiveOracle.java"], check=True)
    packages = "lang lang.reflect net util util.concurrent util.concurrent.atomic util.regex nio io time text".split()
    opens = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in packages]
    command = ["java", *opens, "-Duser.timezone=UTC", "-Xmx1500m", "-cp", classpath, "HiveOracle"]
    command += [asked, tmp_path / "answers.txt", tmp_path / "hive"]
    environment = {**os.environ, "TZ": "UTC"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    here = str(files)
    answers = rows_by_statement((tmp_path / "answers.txt").read_text().replace(here, "@DIR@"), "R")
    expected = rows_by_statement((TESTS / "external.txt").read_text(), "RH")
    expected[CSV[0]] = CSV[1]
    asked_for = [one for one in answers if one.startswith("select")]
    assert len(asked_for) == 14
    for statement in asked_for:
        assert answers[statement] == expected[statement], statement
