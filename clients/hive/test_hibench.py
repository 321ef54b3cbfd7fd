"""HiBench's three Hive jobs (scan, aggregation, join) on external tables of text and of SequenceFiles, against DuckDB.

Columns of OpenCSVSerde are texts, which sums and averages read as doubles.
"""

import datetime
import random
import string
import struct
import zlib

import duckdb
import pytest
from access_server import PASSWORD, SUPERUSER, Server
from conftest import connect, rows

PAGES, VISITS = 500, 20_000
RANKINGS = ["pageURL", "pageRank", "avgDuration"]
VISIT = ["sourceIP", "destURL", "visitDate", "adRevenue", "userAgent", "countryCode", "languageCode", "searchWord", "duration"]
CSV_SERDE = "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'"


def generated():
    """Lines of rankings and of visits, as HiBench's generator distributes them, in small."""
    chosen = random.Random(42)
    word = lambda least, most: "".join(chosen.choices(string.ascii_lowercase, k=chosen.randint(least, most)))
    urls = [word(10, 100) for _ in range(PAGES)]
    rankings = [f"{url},{chosen.randint(9, 2000)},{chosen.randint(1, 99)}" for url in urls]
    first = datetime.date(1970, 1, 1)
    visits = []
    for _ in range(VISITS):
        # Fewer addresses than HiBench has, so that groups have several rows.
        ip = f"{chosen.randint(1, 9)}.{chosen.randint(0, 9)}.{chosen.randint(0, 9)}.{chosen.randint(1, 9)}"
        day = first + datetime.timedelta(days=chosen.randint(0, 15_460))
        revenue = f"{chosen.random():.8f}"
        visits.append(f"{ip},{chosen.choice(urls)},{day},{revenue},{word(4, 12)}/1.0,ECU,ECU-ES,{word(3, 9)},{chosen.randint(1, 10)}")
    return rankings, visits


def vint(number):
    """`WritableUtils.writeVInt` of a length."""
    if number <= 127:
        return bytes([number])
    digits = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return struct.pack(">b", -112 - len(digits)) + digits


def sequence_file(lines, path):
    """A SequenceFile of (LongWritable, Text), in blocks compressed by zlib, as HiBench writes it."""
    text = lambda value: vint(len(value)) + value
    sync = bytes(range(16))
    with open(path, "wb") as file:
        file.write(b"SEQ\x06" + text(b"org.apache.hadoop.io.LongWritable") + text(b"org.apache.hadoop.io.Text"))
        file.write(b"\x01\x01" + text(b"org.apache.hadoop.io.compress.DefaultCodec") + struct.pack(">i", 0) + sync)
        for begin in range(0, len(lines), 1000):
            values = [text(line.encode()) for line in lines[begin : begin + 1000]]
            keys = [struct.pack(">q", begin + at) for at in range(len(values))]
            file.write(struct.pack(">i", -1) + sync + vint(len(values)))
            for part in (
                b"".join(vint(len(key)) for key in keys),
                b"".join(keys),
                b"".join(vint(len(value)) for value in values),
                b"".join(values),
            ):
                packed = zlib.compress(part)
                file.write(vint(len(packed)) + packed)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A server that may use a folder, in which the two tables are in both formats; DuckDB with the same rows."""
    directory = tmp_path_factory.mktemp("hibench")
    files = directory / "files"
    rankings, visits = generated()
    for name, lines in (("rankings", rankings), ("uservisits", visits)):
        for kind in ("text", "sequence"):
            (files / kind / name).mkdir(parents=True)
        # Two files each, so that there is something to read side by side.
        half = len(lines) // 2
        for part, some in enumerate((lines[:half], lines[half:])):
            (files / "text" / name / f"part-0000{part}").write_text("".join(f"{line}\n" for line in some))
            sequence_file(some, files / "sequence" / name / f"part-0000{part}")
    config = directory / "stoa.toml"
    config.write_text(f'file_access = "{files}"\n')
    server = Server(directory, "--config", str(config))
    duck = duckdb.connect()
    for name, columns in (("rankings", RANKINGS), ("uservisits", VISIT)):
        listed = ", ".join(f"'{column}': 'VARCHAR'" for column in columns)
        duck.execute(f"CREATE TABLE {name} AS FROM read_csv('{files}/text/{name}/part-*', header=false, columns={{{listed}}})")
    connection = connect(server.hive_port, "ldap", "hive", username=SUPERUSER, password=PASSWORD)
    yield connection.cursor(), duck, files
    connection.close()
    server.stop()


def tables(cursor, files, kind):
    """Defines the tables as HiBench does: external, all columns texts."""
    stored = {"text": "TEXTFILE", "sequence": "SEQUENCEFILE"}[kind]
    cursor.execute(f"CREATE DATABASE IF NOT EXISTS {kind}")
    cursor.execute(f"USE {kind}")

    def define(name, columns, location):
        listed = ", ".join(columns)
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
        cursor.execute(f"CREATE EXTERNAL TABLE {name} ({listed}) {CSV_SERDE} STORED AS {stored} LOCATION '{location}'")

    define("rankings", ["pageURL STRING", "pageRank INT", "avgDuration INT"], files / kind / "rankings")
    visit = [f"{column} STRING" for column in VISIT]
    define("uservisits", visit, files / kind / "uservisits")
    define("uservisits_copy", visit, files / kind / "out" / "scan")
    for name, columns in (
        ("uservisits_aggre", "sourceIP STRING, sumAdRevenue DOUBLE"),
        ("rankings_uservisits_join", "sourceIP STRING, avgPageRank DOUBLE, totalRevenue DOUBLE"),
    ):
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
        cursor.execute(
            f"CREATE EXTERNAL TABLE {name} ({columns}) STORED AS SEQUENCEFILE LOCATION '{files}/{kind}/out/{name}'"
        )


def near(found, expected):
    """Whether rows are equal, sums of floating point numbers but for the order of their terms."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one[0] == other[0]
        assert list(one[1:]) == pytest.approx(list(other[1:]), rel=1e-9)


@pytest.mark.parametrize("kind", ["text", "sequence"])
def test_jobs_give_the_rows_of_duckdb(bench, kind):
    cursor, duck, files = bench
    tables(cursor, files, kind)
    cursor.execute("INSERT OVERWRITE TABLE uservisits_copy SELECT * FROM uservisits")
    found = sorted(rows(cursor, "SELECT * FROM uservisits_copy"))
    assert found == sorted(duck.execute("FROM uservisits").fetchall())

    cursor.execute(
        "INSERT OVERWRITE TABLE uservisits_aggre SELECT sourceIP, SUM(adRevenue) FROM uservisits GROUP BY sourceIP"
    )
    expected = duck.execute("SELECT sourceIP, sum(adRevenue::DOUBLE) FROM uservisits GROUP BY 1 ORDER BY 1").fetchall()
    near(rows(cursor, "SELECT * FROM uservisits_aggre ORDER BY sourceIP"), expected)

    cursor.execute(
        "INSERT OVERWRITE TABLE rankings_uservisits_join SELECT sourceIP, avg(pageRank), sum(adRevenue) AS totalRevenue "
        "FROM rankings R JOIN (SELECT sourceIP, destURL, adRevenue FROM uservisits UV WHERE "
        "(datediff(UV.visitDate, '1999-01-01') >= 0 AND datediff(UV.visitDate, '2000-01-01') <= 0)) NUV "
        "ON (R.pageURL = NUV.destURL) GROUP BY sourceIP ORDER BY totalRevenue DESC"
    )
    expected = duck.execute(
        "SELECT sourceIP, avg(pageRank::DOUBLE), sum(adRevenue::DOUBLE) FROM rankings JOIN uservisits ON pageURL = destURL "
        "WHERE visitDate BETWEEN '1999-01-01' AND '2000-01-01' GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert len(expected) > 100
    near(rows(cursor, "SELECT * FROM rankings_uservisits_join ORDER BY sourceIP"), expected)
    # Again: what is there is replaced.
    cursor.execute("INSERT OVERWRITE TABLE uservisits_copy SELECT * FROM uservisits")
    assert rows(cursor, "SELECT count(*) FROM uservisits_copy") == [(VISITS,)]
