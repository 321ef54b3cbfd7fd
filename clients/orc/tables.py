"""Tables of all types × patterns of NULLs × sizes, from a fixed seed."""

import math
import random
import struct
from datetime import date, timedelta
from decimal import Context, Decimal

import pyarrow as pa

# Options of the writer, one set after the other.
OPTIONS = [
    [],
    ["compression=none", "stride=1000"],
    ["compression=zlib", "stripe_rows=3000", "stride=777"],
    ["compression=snappy", "block=1024", "stride=100"],
    ["compression=lz4", "dictionary=always", "block=4096", "stripe_bytes=20000"],
    ["compression=zstd", "level=1", "dictionary=never", "stride=50"],
    ["compression=none", "stride=0", "stripe_rows=5000"],
    ["stride=1000", "compact_index=false", "metadata=owner:stoa"],
]
NULLS = ["none", "some", "half", "all", "runs", "first", "last"]
# Rows, patterns of NULLs; every pattern meets the borders of runs, and of row groups.
CASES = [
    *((rows, pattern) for rows in (0, 1, 2, 3, 511) for pattern in ("none", "half")),
    *((513, pattern) for pattern in NULLS),
    (9_999, "runs"), (10_000, "last"), (10_001, "first"),
    *((20_001, pattern) for pattern in ("none", "some")),
]


def is_null(rng, pattern, row, rows):
    return {
        "none": lambda: False,
        "some": lambda: rng.random() < 0.1,
        "half": lambda: rng.random() < 0.5,
        "all": lambda: True,
        "runs": lambda: row // 700 % 2 == 1,
        "first": lambda: row == 0,
        "last": lambda: row > rows * 9 // 10,
    }[pattern]()


def text(rng, row):
    kind = rng.randrange(40)
    if kind == 0:
        return ""
    if kind == 1:
        return rng.choice("äあ\U0001f600z\x7f") * rng.randrange(1500)
    if kind < 20:
        return rng.choice(["alpha", "beta", "gamma", "δέλτα", "εεε"])
    return f"value {row // 3}"


def integer(bits):
    limit = 1 << (bits - 1)

    def make(rng, row):
        kind = row // 1000 % 6
        if kind == 0:
            return rng.randrange(-limit, limit)
        if kind == 1:
            return rng.randrange(-limit, limit) >> rng.randrange(bits)
        if kind == 2:
            return min(row // 3, limit - 1)
        if kind == 3:
            return max(-row, -limit)
        if kind == 4:
            return rng.randrange(100) if rng.random() < 0.98 else limit - 1
        return row // 200 % 100

    return make


def micros(rng, row):
    # The format can't tell the second before 1970 from the one after it; pyarrow's reader keeps
    # nanoseconds, so 1678 to 2261 is as far as it goes.
    kind = rng.randrange(4)
    if kind == 0:
        value = rng.randrange(-9 * 10**15, 9 * 10**15)
    elif kind == 1:
        value = rng.randrange(-9 * 10**9, 9 * 10**9) * 1_000_000
    elif kind == 2:
        value = 1_700_000_000_000_000 + row * 1000
    else:
        value = rng.randrange(-9 * 10**9, 9 * 10**9) * 1_000_000 + 250_000
    return value if not -1_000_000 < value < 0 else value - 1_000_000


def nanos(rng, row):
    value = rng.randrange(-9 * 10**18, 9 * 10**18)
    value -= value % rng.choice([1, 10, 100, 1000, 10**6, 10**8, 10**9])
    return value if not -(10**9) < value < 0 else value - 10**9


def decimal(precision, scale):
    context = Context(prec=60)

    def make(rng, row):
        digits = rng.randrange(1, precision + 1)
        return Decimal(rng.randrange(10**digits) * rng.choice([1, -1])).scaleb(-scale, context)

    return make


def special(rng, row):
    kind = rng.randrange(30)
    return [math.nan, math.inf, -math.inf, -0.0, 0.0][kind] if kind < 5 else rng.gauss(0, 1e6)


def single(rng, row):
    return struct.unpack("f", struct.pack("f", rng.gauss(0, 100)))[0]


def deep(rng, row):
    many = [{"m": None}, {"m": [(1, None), (2, [1.5, None]), (row, [])]}]
    return rng.choice([[], [None], many])


def nested(rng, row):
    inner = rng.choice([None, {"d": True}, {"d": None}])
    return {"a": rng.choice([None, row]), "b": rng.choice([None, "x", "yy"]), "c": inner}


TYPES = {
    "bool": (pa.bool_(), lambda rng, row: rng.random() < 0.3 or row // 500 % 2 == 0),
    "int8": (pa.int8(), integer(8)),
    "int16": (pa.int16(), integer(16)),
    "int32": (pa.int32(), integer(32)),
    "int64": (pa.int64(), integer(64)),
    "float": (pa.float32(), single),
    "double": (pa.float64(), lambda rng, row: rng.gauss(0, 1e6)),
    "double_special": (pa.float64(), special),
    "string": (pa.string(), text),
    "large_string": (pa.large_string(), text),
    "string_view": (pa.string_view(), text),
    "string_unique": (pa.string(), lambda rng, row: f"{rng.random()}"),
    "string_dictionary": (pa.dictionary(pa.int32(), pa.string()), text),
    "string_turns": (pa.string(), lambda rng, row: "same" if row < 12_000 else f"{rng.random()}"),
    "binary": (pa.binary(), lambda rng, row: rng.randbytes(rng.randrange(20))),
    "fixed": (pa.binary(5), lambda rng, row: rng.randbytes(5)),
    "date": (pa.date32(), lambda rng, row: date(1, 1, 1) + timedelta(rng.randrange(3_650_000))),
    "timestamp_s": (pa.timestamp("s"), lambda rng, row: micros(rng, row) // 10**6),
    "timestamp_ms": (pa.timestamp("ms"), lambda rng, row: micros(rng, row) // 1000),
    "timestamp_us": (pa.timestamp("us"), micros),
    "timestamp_ns": (pa.timestamp("ns"), nanos),
    "instant": (pa.timestamp("us", "UTC"), micros),
    "instant_zone": (pa.timestamp("us", "Asia/Tokyo"), micros),
    "decimal": (pa.decimal128(12, 2), decimal(12, 2)),
    "decimal_wide": (pa.decimal128(38, 10), decimal(33, 10)),
    "decimal_full": (pa.decimal128(38, 10), decimal(38, 10)),
    "list": (
        pa.list_(pa.int32()),
        lambda rng, row: [rng.choice([None, row, row * 7 % 1000]) for _ in range(rng.randrange(5))],
    ),
    "list_text": (
        pa.large_list(pa.string()),
        lambda rng, row: [text(rng, row) if rng.random() < 0.8 else None for _ in range(rng.randrange(3))],
    ),
    "fixed_list": (pa.list_(pa.int16(), 3), lambda rng, row: [row % 100, None, 7]),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        lambda rng, row: [(f"k{at}", rng.choice([None, row])) for at in range(rng.randrange(4))],
    ),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.struct([("d", pa.bool_())]))]),
        nested,
    ),
    "deep": (pa.list_(pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.float64())))])), deep),
}


def column(rng, name, pattern, rows):
    kind, make = TYPES[name]
    values = [None if is_null(rng, pattern, row, rows) else make(rng, row) for row in range(rows)]
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)


def union_column(rng, rows):
    tags = [rng.randrange(2) for _ in range(rows)]
    offsets, counts = [], [0, 0]
    for tag in tags:
        offsets.append(counts[tag])
        counts[tag] += 1
    children = [
        pa.array([rng.choice([None, at]) for at in range(counts[0])], pa.int64()),
        pa.array([f"s{at}" for at in range(counts[1])], pa.string()),
    ]
    tags, offsets = pa.array(tags, pa.int8()), pa.array(offsets, pa.int32())
    return pa.UnionArray.from_dense(tags, offsets, children, ["0", "1"])


def table(rows, pattern, without=()):
    """A table of every type but those named."""
    rng = random.Random(f"{rows} {pattern}")
    columns = {name: column(rng, name, pattern, rows) for name in TYPES if name not in without}
    if "union" not in without:
        columns["union"] = union_column(rng, rows)
    return pa.table(columns)
