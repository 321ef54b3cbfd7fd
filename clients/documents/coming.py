"""Runs what the pages "Coming from …" tell readers to do, on data of the system that they come from, and checks what arrived.

    coming.py BINARY DIRECTORY

Environment: PGHOST, PGPORT, PGUSER of a PostgreSQL with a database `stoa`; without PGPORT, the page about PostgreSQL is
skipped. ClickHouse and Hypertable are not here: a program of the name `clickhouse-client` gives a Parquet file, and the dump is
one as Hypertable writes it. Prints a line per page, and the sum.
"""

import csv
import gzip
import io
import os
import pathlib
import subprocess
import sys
import traceback

from run_page import BLOCK, Page

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
# account, day, url, clicks
VISITS = [(n % 7, f"2025-{1 + n % 3:02}-{1 + n % 28:02}", f"http://x/{n}?a=\"b\",'c'\\{n}" if n % 5 else None, n * 3) for n in range(500)]


class Coming(Page):
    """A page whose commands all have to go well, on a server that may read this directory."""

    def __init__(self, binary, place, name):
        place.mkdir()
        super().__init__(binary, place)
        self.markdown = (DOCS / name).read_text(encoding="utf-8")
        self.environment["STOA_FILE_ACCESS"] = str(place)
        self.start()

    def do(self, kind, text):
        printed = self.run(kind, text)
        assert "(exit code" not in printed, f"{text}{printed}"
        return printed

    def run_blocks(self, replace=lambda text: text, kinds=("sh", "sql")):
        found = [(block[1], replace(block[2])) for block in BLOCK.finditer(self.markdown) if block[1] in kinds]
        assert found, "the page has no commands"
        return "".join(self.do(kind, text) for kind, text in found)

    def says(self, *claims):
        """Runs statements of which the page speaks: each claim is a part of the page, and the statements."""
        for part, *statements in claims:
            assert part in self.markdown, f"the page does not say {part!r} any more"
            for statement in statements:
                self.do("sql", statement + ";")

    def rows(self, sql):
        """What the server answers, as lists of texts."""
        out = subprocess.run(["stoa", "sql", "--format", "csv", "--no-header", "-c", sql], cwd=self.place, env=self.environment,
                             text=True, capture_output=True, timeout=120, check=True).stdout
        return list(csv.reader(io.StringIO(out)))

    def check_visits(self, table="visits"):
        assert self.rows(f"SELECT count(*), sum(clicks), count(url), min(day), max(day) FROM {table}") == [[
            str(len(VISITS)), str(sum(visit[3] for visit in VISITS)), str(sum(visit[2] is not None for visit in VISITS)), "2025-01-01", "2025-03-28"]]
        ours = self.rows(f"SELECT account, day, url, clicks FROM {table} ORDER BY clicks")
        assert ours == [["" if value is None else str(value) for value in visit] for visit in VISITS], ours[:3]


def psql(database, sql, text=None):
    subprocess.run(["psql", "-qXd", database, "-v", "ON_ERROR_STOP=1", "-c", sql], input=text, text=True, check=True, capture_output=True, timeout=60)


def from_postgresql(binary, place):
    if "PGPORT" not in os.environ:
        return "skipped"
    psql("stoa", "CREATE DATABASE old")
    psql("old", "CREATE TABLE visits (account bigint, day date, url text, clicks bigint)")
    copied = io.StringIO()
    csv.writer(copied, lineterminator="\n").writerows(["" if value is None else value for value in visit] for visit in VISITS)
    psql("old", "COPY visits FROM STDIN WITH (FORMAT csv)", copied.getvalue())
    page = Coming(binary, place, "from-postgresql.md")
    page.run_blocks()
    page.check_visits()
    # The way for a large table.
    copy, load = r"\copy visits TO 'visits.csv' WITH (FORMAT csv, HEADER)", "stoa load visits.csv --into visits"
    assert copy in page.markdown and load in page.markdown.replace("\n", " ")
    page.do("sql", "TRUNCATE visits;")
    subprocess.run(["psql", "-qXd", "old", "-c", copy], cwd=place, check=True, timeout=60)
    page.do("sh", load)
    page.check_visits()
    page.says(
        ("`stoa.retention = '13 months'`", "ALTER TABLE visits SET TBLPROPERTIES ('stoa.retention' = '100 years')"),
        ("`VACUUM`, `ANALYZE`", "VACUUM visits", "ANALYZE visits"),
        ("`INSERT … ON CONFLICT` and `MERGE` keep it", "CREATE TABLE k (id int PRIMARY KEY, v int)", "INSERT INTO k VALUES (1, 1)",
         "INSERT INTO k VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = excluded.v"),
        ("identity columns and defaults are", "CREATE TABLE i (id bigint GENERATED ALWAYS AS IDENTITY, at timestamp DEFAULT now(), w text)", "INSERT INTO i (w) VALUES ('a')"),
        ("`COPY … TO STDOUT` for one table", "COPY visits TO STDOUT"),
        ("`EXPLAIN (ANALYZE)`", "EXPLAIN (ANALYZE) SELECT count(*) FROM visits"),
    )
    assert page.rows("SELECT * FROM k") == [["1", "2"]]
    return page


def from_hive(binary, place):
    page = Coming(binary, place, "from-hive.md")
    files = place / "hive" / "visits"
    columns = "account BIGINT, url STRING, clicks BIGINT"
    page.do("sql", f"SET dialect = hive; CREATE EXTERNAL TABLE made ({columns}) PARTITIONED BY (day DATE) STORED AS ORC LOCATION '{files}';")
    quoted = ["NULL" if url is None else "'" + url.replace("'", "''") + "'" for _, _, url, _ in VISITS]
    values = ", ".join(f"({account}, {url}, {clicks}, DATE '{day}')" for (account, day, _, clicks), url in zip(VISITS, quoted))
    page.do("sql", f"INSERT INTO made (account, url, clicks, day) VALUES {values};")
    page.do("sql", "DROP TABLE made;")
    assert len(list(files.glob("day=*/*"))) == len({day for _, day, _, _ in VISITS}), "the files stay, a directory for each day"
    page.run_blocks(lambda text: text.replace("/data/hive/visits", str(files)))
    page.check_visits()
    page.check_visits("old_visits")
    return page


def from_clickhouse(binary, place):
    page = Coming(binary, place, "from-clickhouse.md")
    values = ", ".join(f"({account}, DATE '{day}', {'NULL' if url is None else chr(39) + url.replace(chr(39), chr(39) * 2) + chr(39)}, {clicks})" for account, day, url, clicks in VISITS)
    page.do("sql", f"SET dialect = hive; CREATE EXTERNAL TABLE made (account BIGINT, day DATE, url STRING, clicks BIGINT) STORED AS PARQUET LOCATION '{place}/parquet';")
    page.do("sql", f"INSERT INTO made VALUES {values};")
    [file] = [file for file in (place / "parquet").iterdir() if file.read_bytes()[:4] == b"PAR1"]
    stand_in = place / "bin" / "clickhouse-client"
    stand_in.write_text(f"#!/bin/sh\nexec cat '{file}'\n")
    stand_in.chmod(0o755)
    page.run_blocks()
    page.check_visits()
    page.says(
        ("`stoa.retention = '13 months'`", "ALTER TABLE visits SET TBLPROPERTIES ('stoa.retention' = '100 years')"),
        ("`stoa.orc.row-index-stride`", "ALTER TABLE visits SET TBLPROPERTIES ('stoa.orc.row-index-stride' = '8192')"),
        ("`write.orc.bloom.filter.columns`", "ALTER TABLE visits SET TBLPROPERTIES ('write.orc.bloom.filter.columns' = 'url')"),
        ("`bigint`, `integer`, `double precision`, `decimal(18, 4)`, `timestamp`", "CREATE TABLE kinds (a bigint, b integer, c double precision, d decimal(18, 4), e timestamp)"),
        ("`COMPACT TABLE name`", "COMPACT TABLE visits"),
        ('`"name$files"` and `SHOW FILES FROM name`', 'SELECT * FROM "visits$files"', "SHOW FILES FROM visits"),
        ("`date_trunc('month', day)`, `count(*) FILTER (WHERE c)`, `count(DISTINCT x)`",
         "SELECT date_trunc('month', day), count(*) FILTER (WHERE clicks > 3), count(DISTINCT url) FROM visits GROUP BY 1"),
        ("tables with `INSERT … SELECT`", "CREATE TABLE days (day date, n bigint)", "INSERT INTO days SELECT day, count(*) FROM visits GROUP BY day"),
    )
    for kind, first in (("csv", "account,day,url,clicks"), ("ndjson", '{"account":')):
        assert f"?format={kind}" in page.markdown
        said = page.do("sh", f"curl -sS --fail-with-body --data-binary 'SELECT * FROM visits ORDER BY clicks' 'http://127.0.0.1:15002/v1/sql?format={kind}'")
        assert said.startswith(first) and said.count("\n") == len(VISITS) + (kind == "csv"), said[:200]
    return page


def from_hypertable(binary, place):
    page = Coming(binary, place, "from-hypertable.md")
    dump = "#timestamp\trow\tcolumn\tvalue\n" + "".join(f"{1_141_171_200_000_000_000 + n}\t{n % 40:05}\tQuery\tquery {n % 9}\n" for n in range(400))
    with gzip.open(place / "query-log.tsv.gz", "wt") as file:
        file.write(dump)
    (place / "dump-query-log.hql").write_text('SELECT * FROM "query-log" DISPLAY_TIMESTAMPS;\n')
    blocks = [(block[1], block[2]) for block in BLOCK.finditer(page.markdown) if block[1] != "text"]
    # The script is one that its readers have already; the table that it reads comes further down on the page.
    scripts = [text for kind, text in blocks if "dump-query-log.hql" in text]
    assert len(scripts) == 1
    for kind, text in blocks:
        if text not in scripts:
            page.do(kind, text)
    said = page.do("sh", scripts[0])
    # `usecs` prints nanoseconds, as Hypertable does.
    cells = [line for line in said.splitlines() if "\t" in line]
    assert sorted(cells) == sorted(f"{1_141_171_200_000_000_000 + n}\t{n % 40:05}\tQuery\tquery {n % 9}" for n in range(400)), said[:300]
    cells = page.rows("SELECT count(*), count(DISTINCT row) FROM \"query-log$cells\" WHERE family = 'Query'")
    assert cells == [["400", "40"]], cells
    return page


def main(binary, directory):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for test in (from_postgresql, from_hive, from_clickhouse, from_hypertable):
        page = None
        try:
            page = test(binary, pathlib.Path(directory) / test.__name__)
            if page == "skipped":
                counts["skipped"] += 1
                print(f"skipped  {test.__name__}")
                continue
            assert page.stop() == 0, "the server did not stop in order"
            counts["passed"] += 1
            print(f"ok       {test.__name__}")
        except Exception as error:
            counts["failed"] += 1
            print(f"FAILED   {test.__name__}\n{traceback.format_exc()}{getattr(error, 'stderr', '') or ''}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return bool(counts["failed"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
