#!/usr/bin/env python3
"""Checks files that stoa-orc writes against other readers: pyarrow (ORC C++) and ORC Java's tools.

Makes tables of all types, null patterns, sizes and option sets, writes each with the crate's
example `write_local`, and compares
  - every value as pyarrow.orc reads it, and as `orc-tools data` prints it;
  - statistics of file, stripes and row groups as `orc-tools meta` prints them;
  - row counts of `orc-tools scan`.

Run from the repository; needs pyarrow and numpy. ORC Java is left out (and said so) without
--orc-tools, the uber jar of org.apache.orc:orc-tools 1.9.6 from Maven Central.

  check_orc_writer.py [--orc-tools JAR] [--writer PROGRAM] [--keep DIR] [--bench ROWS]
"""

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc

OPTIONS = [
    [],
    ["compression=none", "stride=1000"],
    ["compression=zlib", "stripe_rows=3000", "stride=777"],
    ["compression=snappy", "block=1024", "stride=100"],
    ["compression=lz4", "dictionary=always", "block=4096", "stripe_bytes=20000"],
    ["compression=zstd", "level=1", "dictionary=never", "stride=10"],
    ["compression=none", "stride=0", "stripe_rows=5000"],
    ["bloom=int64", "bloom=string", "bloom=date", "bloom=decimal", "bloom=timestamp_us"],
]
SIZES = [0, 1, 2, 3, 511, 513, 9_999, 10_000, 10_001, 25_000]
# Sizes that ORC Java compares, too. Its `meta -j` fails on NaN and on a decimal without a sum.
JAVA_SIZES = {0, 1, 513, 10_001, 25_000}
NOT_FOR_JAVA = {"double_nan", "decimal_full"}
NULLS = ["none", "some", "half", "all", "runs", "first", "last"]
EPOCH = datetime(1970, 1, 1)


def is_null(pattern, row, rows):
    return {
        "none": False,
        "some": random.random() < 0.1,
        "half": random.random() < 0.5,
        "all": True,
        "runs": row // 700 % 2 == 1,
        "first": row == 0,
        "last": row > rows * 9 // 10,
    }[pattern]


def text(row):
    kind = random.randrange(40)
    if kind == 0:
        return ""
    if kind == 1:
        return random.choice("äあ\U0001f600z\x7f") * random.randrange(1500)
    if kind < 20:
        return random.choice(["alpha", "beta", "gamma", "δέλτα", "εεε"])
    return f"value {row // 3}"


def integer(bits):
    def make(row):
        kind = row // 1000 % 6
        limit = 1 << (bits - 1)
        if kind == 0:
            return random.randrange(-limit, limit)
        if kind == 1:
            return random.randrange(-limit, limit) >> random.randrange(bits)
        if kind == 2:
            return min(row // 3, limit - 1)
        if kind == 3:
            return max(-row, -limit)
        if kind == 4:
            return random.randrange(100) if random.random() < 0.98 else limit - 1
        return row // 200 % 100
    return make


def micros(row):
    # The format can't tell the second before 1970 from the one after it; pyarrow's reader keeps
    # nanoseconds, so 1678 to 2261 is as far as it goes.
    value = random.choice([
        random.randrange(-(10**15), 4 * 10**15),
        random.randrange(-(10**9), 4 * 10**9) * 1_000_000,
        1_700_000_000_000_000 + row * 1000,
        random.randrange(-(9 * 10**9), 9 * 10**9) * 1_000_000 + 250_000,
    ])
    return value if not -1_000_000 < value < 0 else value - 1_000_000


def nanos(row):
    value = random.randrange(-(9 * 10**18), 9 * 10**18)
    value -= value % random.choice([1, 10, 100, 1000, 10**6, 10**8, 10**9])
    return value if not -(10**9) < value < 0 else value - 10**9


def decimal(precision, scale):
    def make(row):
        digits = random.randrange(1, precision + 1)
        value = random.randrange(10**digits) * random.choice([1, -1])
        return Decimal(value).scaleb(-scale, context)
    from decimal import Context
    context = Context(prec=60)
    return make


def number(row):
    kind = random.randrange(30)
    return [math.nan, math.inf, -math.inf, -0.0, 0.0][kind] if kind < 5 else random.gauss(0, 1e6)


TYPES = {
    "bool": (pa.bool_(), lambda row: random.random() < 0.3 or row // 500 % 2 == 0),
    "int8": (pa.int8(), integer(8)),
    "int16": (pa.int16(), integer(16)),
    "int32": (pa.int32(), integer(32)),
    "int64": (pa.int64(), integer(64)),
    "float": (pa.float32(), lambda row: float(np.float32(random.gauss(0, 100)))),
    "double": (pa.float64(), lambda row: random.gauss(0, 1e6)),
    "double_nan": (pa.float64(), number),
    "string": (pa.string(), text),
    "large_string": (pa.large_string(), text),
    "string_view": (pa.string_view(), text),
    "string_unique": (pa.string(), lambda row: f"{random.random()}"),
    "string_dictionary": (pa.dictionary(pa.int32(), pa.string()), text),
    "string_turns": (pa.string(), lambda row: "same" if row < 12_000 else f"{random.random()}" * 3),
    "binary": (pa.binary(), lambda row: random.randbytes(random.randrange(20))),
    "fixed": (pa.binary(5), lambda row: random.randbytes(5)),
    "date": (pa.date32(), lambda row: date(1, 1, 1) + timedelta(random.randrange(3_650_000))),
    "timestamp_s": (pa.timestamp("s"), lambda row: micros(row) // 10**6),
    "timestamp_ms": (pa.timestamp("ms"), lambda row: micros(row) // 10**6 * 1000 + random.randrange(1000) * (row % 2)),
    "timestamp_us": (pa.timestamp("us"), micros),
    "timestamp_ns": (pa.timestamp("ns"), nanos),
    "instant": (pa.timestamp("us", "UTC"), micros),
    "instant_zone": (pa.timestamp("us", "Asia/Tokyo"), micros),
    "decimal": (pa.decimal128(12, 2), decimal(12, 2)),
    "decimal_wide": (pa.decimal128(38, 10), decimal(33, 10)),
    "decimal_full": (pa.decimal128(38, 10), decimal(38, 10)),
    "list": (pa.list_(pa.int32()), lambda row: [random.choice([None, row, row * 7 % 1000]) for _ in range(random.randrange(5))]),
    "list_text": (pa.large_list(pa.string()), lambda row: [text(row) if random.random() < 0.8 else None for _ in range(random.randrange(3))]),
    "fixed_list": (pa.list_(pa.int16(), 3), lambda row: [row % 100, None, 7]),
    "map": (pa.map_(pa.string(), pa.int64()), lambda row: [(f"k{at}", random.choice([None, row])) for at in range(random.randrange(4))]),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.struct([("d", pa.bool_())]))]),
        lambda row: {"a": random.choice([None, row]), "b": random.choice([None, "x", "yy"]), "c": random.choice([None, {"d": True}, {"d": None}])},
    ),
    "deep": (
        pa.list_(pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.float64())))])),
        lambda row: random.choice([[], [None], [{"m": None}, {"m": [(1, None), (2, [1.5, None]), (row, [])]}]]),
    ),
}


def column(name, pattern, rows):
    kind, make = TYPES[name]
    values = [None if is_null(pattern, row, rows) else make(row) for row in range(rows)]
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)


def union_column(rows):
    tags = [random.randrange(2) for _ in range(rows)]
    offsets, counts = [], [0, 0]
    for tag in tags:
        offsets.append(counts[tag])
        counts[tag] += 1
    children = [
        pa.array([random.choice([None, at]) for at in range(counts[0])], pa.int64()),
        pa.array([f"s{at}" for at in range(counts[1])], pa.string()),
    ]
    return pa.UnionArray.from_dense(
        pa.array(tags, pa.int8()), pa.array(offsets, pa.int32()), children, ["0", "1"])


def tables():
    """Name, options, table."""
    case = 0
    for rows in SIZES:
        for pattern in NULLS if rows in (513, 25_000) else ["none", random.choice(NULLS)]:
            names = [name for name in TYPES if name not in NOT_FOR_JAVA or rows not in JAVA_SIZES]
            columns = {name: column(name, pattern, rows) for name in names}
            columns["union"] = union_column(rows)
            sets = OPTIONS if rows == 25_000 and pattern == "some" else [OPTIONS[case % len(OPTIONS)]]
            for options in sets:
                yield f"{rows}-{pattern}-{case}", options, pa.table(columns)
                case += 1


def write(writer, table, options, path, batch_rows=8192):
    source = path.with_suffix(".arrow")
    with pa.ipc.new_stream(source, table.schema) as sink:
        sink.write_table(table, max_chunksize=batch_rows)
    done = subprocess.run([*writer, *options, str(source), str(path)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path.name}: writer failed: {done.stderr}")
    source.unlink()
    return done.stdout


def plain(array):
    """Comparable Python values; floats by their bits."""
    if pa.types.is_floating(array.type):
        return [None if value is None else repr(value) for value in array.to_pylist()]
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64()).to_pylist()
    return array.to_pylist()


def check_pyarrow(name, table, path):
    file = orc.ORCFile(path)
    _ = (file.writer, file.writer_version, file.software_version)
    found = file.read()
    assert found.num_rows == table.num_rows, (name, found.num_rows)
    for column in table.column_names:
        expected, got = table[column], found[column]
        if pa.types.is_timestamp(expected.type):
            got = got.cast(expected.type)
        elif expected.type != got.type and not pa.types.is_nested(expected.type):
            got = got.cast(expected.type if not pa.types.is_dictionary(expected.type) else pa.string())
        expected, got = plain(expected), plain(got)
        if expected != got:
            at = next(at for at, pair in enumerate(zip(expected, got)) if pair[0] != pair[1])
            raise AssertionError((name, column, at, expected[at], got[at]))


def java(tools, *arguments):
    command = ["java", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8", "-jar", tools, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, (arguments, done.stderr[-2000:])
    return done.stdout


def java_value(kind, value):
    """A value as `orc-tools data` prints it."""
    if value is None:
        return None
    if pa.types.is_dictionary(kind):
        return value
    if pa.types.is_timestamp(kind):
        per = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[kind.unit]
        seconds, fraction = divmod(value * per, 10**9)
        moment = EPOCH + timedelta(seconds=seconds)
        digits = f"{fraction:09}".rstrip("0") or "0"
        stamp = f"{moment.year:04}-{moment:%m-%d %H:%M:%S}.{digits}"
        return stamp
    if pa.types.is_date(kind):
        return f"{value.year:04}-{value:%m-%d}"
    if pa.types.is_decimal(kind):
        return value
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return list(value)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [java_value(kind.value_type, item) for item in value]
    if pa.types.is_map(kind):
        return [{"_key": java_value(kind.key_type, k), "_value": java_value(kind.item_type, v)} for k, v in value]
    if pa.types.is_struct(kind):
        return {field.name: java_value(field.type, value[field.name]) for field in kind}
    return value


# Printed in ways of their own.
JAVA_SKIPS = {"union", "float"}
# Printed in the hybrid calendar: days before 1582-10-15 have other names there.
JAVA_HYBRID = {"timestamp_s", "timestamp_ms", "timestamp_us", "instant", "instant_zone", "date"}


def same(expected, got):
    if isinstance(expected, Decimal):
        return Decimal(got) == expected
    if isinstance(expected, float):
        return isinstance(got, (int, float, Decimal)) and float(got) == expected
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(same, expected, got))
    if isinstance(expected, dict):
        return isinstance(got, dict) and all(same(value, got.get(key)) for key, value in expected.items())
    return expected == got


def check_java_data(tools, name, table, path):
    rows = [json.loads(line, parse_float=Decimal) for line in java(tools, "data", path).splitlines() if line.startswith("{")]
    assert len(rows) == table.num_rows, (name, len(rows))
    compared = 0
    for column in table.column_names:
        if column in JAVA_SKIPS:
            continue
        kind = table[column].type
        stamps = pa.types.is_timestamp(kind)
        values = table[column].cast(pa.int64()).to_pylist() if stamps else table[column].to_pylist()
        for at, value in enumerate(values):
            if column in JAVA_HYBRID and value is not None:
                per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit] if stamps else None
                days = value // per // 86_400 if stamps else (value - date(1970, 1, 1)).days
                if days < -141_427:
                    continue
            expected, got = java_value(kind, value), rows[at].get(column)
            assert same(expected, got), (name, column, at, expected, got)
            compared += 1
    return compared


def expected_statistics(kind, values):
    """Of the values that are not NULL, as `orc-tools meta` names them."""
    if pa.types.is_boolean(kind):
        return {"trueCount": sum(values), "falseCount": len(values) - sum(values)}
    if not values:
        return {}
    if pa.types.is_integer(kind):
        total = sum(values)
        fits = {"sum": total} if -(2**63) <= total < 2**63 else {}
        return {"min": min(values), "max": max(values), **fits}
    if pa.types.is_floating(kind):
        return {"min": min(values), "max": max(values)}
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        encoded = [value.encode() for value in values]
        low, high = min(encoded), max(encoded)
        stats = {"totalLength": sum(map(len, encoded))}
        if len(low) <= 1024:
            stats["min"] = low.decode()
        if len(high) <= 1024:
            stats["max"] = high.decode()
        return stats
    if pa.types.is_decimal(kind):
        return {"min": min(values), "max": max(values)}
    if pa.types.is_binary(kind):
        return {"totalLength": sum(map(len, values))}
    if pa.types.is_list(kind):
        lengths = list(map(len, values))
        return {"minChildren": min(lengths), "maxChildren": max(lengths), "totalChildren": sum(lengths)}
    return {}


def check_statistics(where, kind, values, stats):
    present = [value for value in values if value is not None]
    assert stats["count"] == len(present), (where, stats, len(present))
    assert stats["hasNull"] == (len(present) < len(values)), (where, stats)
    for key, expected in expected_statistics(kind, present).items():
        got = stats.get(key)
        if isinstance(expected, Decimal):
            got = None if got is None else Decimal(str(got))
        assert got == expected or (isinstance(expected, float) and math.isclose(got, expected, rel_tol=1e-12)), (where, key, got, expected)


def check_java_statistics(tools, name, table, path, options):
    given = dict(option.split("=", 1) for option in options if not option.startswith("bloom"))
    stride = int(given.get("stride", 10_000))
    ids, column_id = {}, 1
    for field in table.schema:
        ids[field.name] = column_id
        column_id += count_columns(field.type)
    checked = ["bool", "int8", "int16", "int32", "int64", "double", "string", "large_string", "string_unique", "string_turns", "binary", "decimal", "decimal_wide", "list"]
    meta = json.loads(java(tools, "meta", "-j", "-r", ",".join(str(ids[c]) for c in checked), path))
    levels = 0
    for column in checked:
        kind, values = table[column].type, table[column].to_pylist()
        by_id = lambda entries: next(entry for entry in entries if entry["columnId"] == ids[column])
        check_statistics((name, column, "file"), kind, values, by_id(meta["fileStatistics"]))
        row = 0
        for number, (stripe, stats) in enumerate(zip(meta["stripes"], meta["stripeStatistics"])):
            rows = stripe["stripeInformation"]["rowCount"]
            part = values[row : row + rows]
            check_statistics((name, column, f"stripe {number}"), kind, part, by_id(stats["columnStatistics"]))
            levels += 1
            if stride:
                entries = by_id(stripe["indexes"])["rowGroupIndexes"]
                assert len(entries) == -(-rows // stride), (name, column, len(entries))
                for group, entry in enumerate(entries):
                    group_values = part[group * stride : (group + 1) * stride]
                    check_statistics((name, column, f"stripe {number} group {group}"), kind, group_values, entry)
                    levels += 1
            row += rows
    return levels


def count_columns(kind):
    if pa.types.is_map(kind):
        return 1 + count_columns(kind.key_type) + count_columns(kind.item_type)
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        return 1 + sum(count_columns(kind.field(at).type) for at in range(kind.num_fields))
    if pa.types.is_nested(kind):
        return 1 + count_columns(kind.value_type)
    return 1


def report_table(rows):
    """An advertising report: accounts of very different sizes, sorted by account and day."""
    rng = np.random.default_rng(7)
    account = rng.zipf(1.1, size=rows * 4)
    account = account[account <= 100_000][:rows].astype(np.int64)
    rows = len(account)
    day = rng.integers(0, 365, size=rows)
    order = np.lexsort((day, account))
    account, day = account[order], day[order]
    campaign = account * 1000 + rng.integers(0, 50, size=rows)
    impressions = rng.poisson(200, size=rows) * rng.integers(1, 50, size=rows)
    clicks = rng.binomial(impressions, 0.02)
    devices = np.array(["PC", "SMARTPHONE", "TABLET", "OTHER"])
    regions = np.array([f"Prefecture-{at:02}" for at in range(47)])
    return pa.table({
        "account_id": pa.array(account, pa.int32()),
        "day": pa.array(16_801 + day, pa.int32()).cast(pa.date32()),
        "campaign_id": campaign,
        "ad_id": campaign * 100 + rng.integers(0, 20, size=rows),
        "impressions": impressions,
        "clicks": clicks,
        "cost": clicks * rng.integers(10, 500, size=rows) * 1000 + rng.integers(0, 1000, size=rows),
        "conversions": rng.binomial(clicks, 0.03),
        "device": devices[rng.choice(4, size=rows, p=[0.3, 0.6, 0.08, 0.02])],
        "region": regions[rng.integers(0, 47, size=rows)],
        "position": np.round(rng.random(rows) * 10, 2),
    })


def bench(writer, rows, directory):
    """CPU seconds and bytes against pyarrow's ORC writer, one thread each."""
    table = report_table(rows)
    source, ours, theirs = (directory / name for name in ("bench.arrow", "ours.orc", "pyarrow.orc"))
    with pa.ipc.new_stream(source, table.schema) as sink:
        sink.write_table(table, max_chunksize=8192)

    def children(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*writer, f"repeat={repeat}", str(source), str(ours)], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def pyarrow():
        before = resource.getrusage(resource.RUSAGE_SELF)
        orc.write_table(table, theirs, compression="zstd", dictionary_key_size_threshold=0.8)
        after = resource.getrusage(resource.RUSAGE_SELF)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    median = lambda values: sorted(values)[len(values) // 2]
    # Reading the input is in both: the difference of four and two writes is two writes.
    stoa_cpu = median([(children(4) - children(2)) / 2 for _ in range(3)])
    pyarrow_cpu = median([pyarrow() for _ in range(3)])
    stoa_bytes, pyarrow_bytes = ours.stat().st_size, theirs.stat().st_size
    print(f"bench {table.num_rows} rows x {table.num_columns} columns, {table.nbytes / 1e6:.0f} MB in Arrow, zstd, dictionary")
    print(f"  stoa-orc {stoa_cpu:.2f} s CPU, {stoa_bytes / 1e6:.1f} MB; pyarrow {pyarrow_cpu:.2f} s, {pyarrow_bytes / 1e6:.1f} MB")
    print(f"  ratio CPU {stoa_cpu / pyarrow_cpu:.2f}, size {stoa_bytes / pyarrow_bytes:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orc-tools", help="uber jar of org.apache.orc:orc-tools 1.9.6")
    parser.add_argument("--writer", help="built example write_local; default: cargo run")
    parser.add_argument("--keep", type=Path, help="directory for the files")
    parser.add_argument("--bench", type=int, default=0, help="rows of the measurement")
    parser.add_argument("--seed", type=int, default=20261121)
    given = parser.parse_args()
    random.seed(given.seed)
    cargo = "cargo run --quiet --release -p stoa-orc --example write_local --"
    writer = [given.writer] if given.writer else cargo.split()
    with tempfile.TemporaryDirectory() as temporary:
        directory = given.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        if given.bench:
            bench(writer, given.bench, directory)
            return
        paths, rows, values, levels = [], 0, 0, 0
        for name, options, table in tables():
            path = directory / f"{name}.orc"
            write(writer, table, options, path)
            check_pyarrow(name, table, path)
            paths.append(path)
            rows += table.num_rows
            if given.orc_tools and table.num_rows in JAVA_SIZES:
                values += check_java_data(given.orc_tools, name, table, path)
                levels += check_java_statistics(given.orc_tools, name, table, path, options)
        print(f"pyarrow {pa.__version__}: {len(paths)} files, {rows} rows x {len(TYPES) + 1} columns equal")
        if not given.orc_tools:
            print("skipped: ORC Java (no --orc-tools)")
            return
        scanned = java(given.orc_tools, "scan", *paths)
        bad = [line for line in scanned.splitlines() if "bad batches" in line and "bad batches: 0" not in line]
        assert not bad and scanned.count("bad batches: 0") == len(paths), scanned[-2000:]
        print(f"ORC Java: {len(paths)} files scanned, {values} values and {levels} statistics equal")


if __name__ == "__main__":
    main()
