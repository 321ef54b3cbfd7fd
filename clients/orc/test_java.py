"""ORC Java 1.9 and stoa-orc agree: its tools on our files, our reader on its files, and predicate
pushdown with our statistics and bloom filters."""

import base64
import json
import math
import os
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from compare import flat
from conftest import write
from tables import table

# Rows of the files whose values and statistics ORC Java prints; printing is slow.
ROWS_MAX = 600
EPOCH = datetime(1970, 1, 1)
# Days before 1582-10-15 have other names in the calendar that the tools print.
FIRST_GREGORIAN_DAY = -141_427
# `meta -j` fails on NaN and on a decimal without a sum; floats are printed as if they were doubles.
NOT_PRINTED = {"double_special", "decimal_full", "union", "float"}


@pytest.fixture(scope="module")
def printed(scratch):
    """Small files of all types but those that the tools can't print."""
    from conftest import Written
    from tables import OPTIONS

    folder = scratch / "printed"
    folder.mkdir(exist_ok=True)
    files = []
    for rows, pattern in [(0, "none"), (1, "none"), (513, "none"), (513, "some"), (ROWS_MAX, "runs"), (ROWS_MAX, "all")]:
        content = table(rows, pattern, without=NOT_PRINTED)
        options = [*OPTIONS[len(files) % len(OPTIONS)], "stride=100"]
        path = folder / f"{len(files)}-{rows}-{pattern}.orc"
        write(content, options, path)
        files.append(Written(path.stem, options, content, path))
    return files


def java_value(kind, value):
    """A value as `orc-tools data` prints it."""
    if value is None or pa.types.is_dictionary(kind):
        return value
    if pa.types.is_timestamp(kind):
        per = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[kind.unit]
        seconds, fraction = divmod(value * per, 10**9)
        moment = EPOCH + timedelta(seconds=seconds)
        digits = f"{fraction:09}".rstrip("0") or "0"
        return f"{moment.year:04}-{moment:%m-%d %H:%M:%S}.{digits}"
    if pa.types.is_date(kind):
        return f"{value.year:04}-{value:%m-%d}"
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return list(value)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [java_value(kind.value_type, item) for item in value]
    if pa.types.is_map(kind):
        return [{"_key": java_value(kind.key_type, k), "_value": java_value(kind.item_type, v)} for k, v in value]
    if pa.types.is_struct(kind):
        return {field.name: java_value(field.type, value[field.name]) for field in kind}
    return value


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


def day_of(kind, value):
    if pa.types.is_timestamp(kind):
        return value // {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit] // 86_400
    return (value - date(1970, 1, 1)).days


def test_data_prints_our_values(printed, orc_tools):
    # A line of dashes ends each file.
    rows, found = [], []
    for line in orc_tools("data", *(file.path for file in printed)).splitlines():
        if line.startswith("{"):
            found.append(json.loads(line, parse_float=Decimal))
        elif line.startswith("____"):
            rows.append(found)
            found = []
    assert len(rows) == len(printed)
    compared = 0
    for file, found in zip(printed, rows):
        assert len(found) == file.table.num_rows, file.name
        for column in file.table.column_names:
            kind = file.table[column].type
            stamps = pa.types.is_timestamp(kind)
            values = flat(file.table[column]).to_pylist() if stamps else file.table[column].to_pylist()
            for at, value in enumerate(values):
                calendar = stamps or pa.types.is_date(kind)
                if calendar and value is not None and day_of(kind, value) < FIRST_GREGORIAN_DAY:
                    continue
                expected, got = java_value(kind, value), found[at].get(column)
                assert same(expected, got), (file.name, column, at, expected, got)
                compared += 1
    assert compared > 50_000


def test_scan_reads_all_of_our_files(written, orc_tools):
    said = orc_tools("scan", *(file.path for file in written))
    assert said.count("bad batches: 0") == len(written), said[-2000:]
    for file in written:
        assert f"{file.path}" in said.replace("file:", ""), file.name


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
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
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
        close = isinstance(expected, float) and math.isclose(got, expected, rel_tol=1e-12)
        assert got == expected or close, (where, key, got, expected)


def count_columns(kind):
    if pa.types.is_map(kind):
        return 1 + count_columns(kind.key_type) + count_columns(kind.item_type)
    if pa.types.is_struct(kind):
        return 1 + sum(count_columns(field.type) for field in kind)
    if pa.types.is_nested(kind):
        return 1 + count_columns(kind.value_type)
    return 1


def test_meta_prints_statistics_of_our_values(printed, orc_tools):
    checked = [
        "bool", "int8", "int16", "int32", "int64", "double", "string", "large_string",
        "string_unique", "binary", "decimal", "decimal_wide", "list",
    ]
    ids, column_id = {}, 1
    for field in printed[0].table.schema:
        ids[field.name] = column_id
        column_id += count_columns(field.type)
    wanted = ",".join(str(ids[column]) for column in checked)
    metas = json.loads(orc_tools("meta", "-j", "-r", wanted, *(file.path for file in printed)))
    assert len(metas) == len(printed)
    levels = 0
    for file, meta in zip(printed, metas):
        assert meta["fileName"].endswith(file.path.name) and meta["numberOfRows"] == file.table.num_rows
        for column in checked:
            kind, values = file.table[column].type, file.table[column].to_pylist()

            def of(entries):
                return next(entry for entry in entries if entry["columnId"] == ids[column])

            where = (file.name, column)
            check_statistics((*where, "file"), kind, values, of(meta["fileStatistics"]))
            row = 0
            for number, (stripe, stats) in enumerate(zip(meta["stripes"], meta["stripeStatistics"])):
                rows = stripe["stripeInformation"]["rowCount"]
                part = values[row : row + rows]
                check_statistics((*where, number), kind, part, of(stats["columnStatistics"]))
                entries = of(stripe["indexes"])["rowGroupIndexes"]
                assert len(entries) == -(-rows // 100), where
                for group, entry in enumerate(entries):
                    check_statistics((*where, number, group), kind, part[group * 100 : group * 100 + 100], entry)
                levels += 1 + len(entries)
                row += rows
            assert row == len(values), where
    assert levels > 200


def test_meta_merges_our_bloom_filters(orc_tools, scratch):
    """Its merge of the filters of a stripe refuses those that differ in size: `meta -r` ends with
    an error. Here the row groups differ in how many distinct values they have."""
    distinct = [1, 700, 3, 1000, 1000]
    values = [row * count // 1000 for count in distinct for row in range(1000)]
    path = scratch / "bloom-sizes.orc"
    write(pa.table({"value": pa.array(values, pa.int64())}), ["stride=1000", "stripe_rows=3000", "bloom=value"], path)
    meta = json.loads(orc_tools("meta", "-j", "-r", "1", path))
    stripes = [entry for stripe in meta["stripes"] for entry in stripe["indexes"]]
    assert [len(stripe["bloomFilterIndexes"]) for stripe in stripes] == [3, 2]
    for stripe in stripes:
        sizes = {filter["bitCount"] for filter in stripe["bloomFilterIndexes"]}
        assert sizes == {stripe["stripeLevelBloomFilter"]["bitCount"]}, stripe


BLOOM_COLUMNS = ["int64", "string_unique", "string", "date", "decimal", "timestamp_us", "double"]


def test_predicate_pushdown_finds_our_values(orc_tools, scratch):
    """As engines search: by statistics of row groups and bloom filters. A wrong hash or bound
    loses values; a filter that is not used reads rows for values that are not there."""
    content = table(10_001, "some", without=set())
    content = content.select(BLOOM_COLUMNS)
    paths = {}
    for name, options in [("with", [f"bloom={column}" for column in BLOOM_COLUMNS]), ("without", [])]:
        paths[name] = scratch / f"bloom-{name}.orc"
        write(content, ["stride=1000", *options], paths[name])
    found = {}
    for name, path in paths.items():
        lines = orc_tools("OrcJava.java", "search", path, *BLOOM_COLUMNS).splitlines()
        found[name] = {entry["column"]: entry for entry in map(json.loads, lines)}
    for column in BLOOM_COLUMNS:
        for name in paths:
            entry = found[name][column]
            assert entry["found"] == entry["asked"] > 0, (name, entry)
            assert entry["absent"] > 0, (name, entry)
        read = {name: found[name][column]["rowsRead"] for name in paths}
        # One in a hundred filters is wrong about a value; without filters, bounds are all there is.
        assert read["with"] <= read["without"] / 4 + 5_000, (column, read)


def expected_of(kind, value):
    """A value of our reader as `OrcJava.java write` notes it."""
    if value is None:
        return None
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_binary(kind):
        return base64.b64decode(value)
    if pa.types.is_map(kind):
        return [tuple(pair) for pair in value]
    if pa.types.is_boolean(kind):
        return bool(value)
    return value


def ours_of(name, column):
    """Our values in the same form."""
    kind = column.type
    if pa.types.is_date(kind):
        return [None if day is None else str(day) for day in column.to_pylist()]
    if pa.types.is_timestamp(kind):
        nanos = flat(column).to_pylist()
        if name == "ins":
            return [None if value is None else value // 10**6 for value in nanos]
        return [None if value is None else stamp(value) for value in nanos]
    if name == "c":
        # CHAR is padded.
        return [None if value is None else value.rstrip(" ") for value in column.to_pylist()]
    return column.to_pylist()


def stamp(nanos):
    seconds, fraction = divmod(nanos, 10**9)
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}.{fraction:09}"


def test_files_of_orc_java_are_read(orc_tools, to_arrow, scratch):
    """All codecs, both versions of the format, both calendars, zones, dictionaries, no index."""
    folder = scratch / "java"
    folder.mkdir(exist_ok=True)
    orc_tools("OrcJava.java", "write", folder)
    paths = sorted(folder.glob("*.orc"))
    tables, said = to_arrow(paths, "java-arrow")
    assert said == "" and len(paths) == 8
    compared = 0
    for path in paths:
        rows = [json.loads(line) for line in path.with_suffix(".jsonl").read_text("utf-8").splitlines()]
        ours = tables[path]
        assert ours.num_rows == len(rows), path.stem
        for name in ours.column_names:
            column = ours[name]
            expected = [expected_of(column.type, row[name]) for row in rows]
            for at, (value, got) in enumerate(zip(expected, ours_of(name, column), strict=True)):
                assert value == got, f"{path.stem}, {name}, row {at}: expected {value!r}, got {got!r}"
            compared += len(rows)
    assert compared > 800_000, os.listdir(folder)
