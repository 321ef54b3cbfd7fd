"""Values of parameters, in both formats of the PostgreSQL protocol."""

import struct


def _packed(form, *numbers):
    return [struct.pack(form, number) for number in numbers]


def _array(oid, *parts):
    """The binary form of an array with one dimension; a part that is None is NULL."""
    body = b"".join(b"\xff\xff\xff\xff" if part is None else struct.pack("!i", len(part)) + part for part in parts)
    return struct.pack("!iiIii", 1, 1, oid, len(parts), 1) + body


# Microseconds since 2000, and the two infinities.
MOMENTS = _packed("!q", 0, -1, 473_000_000_000_000, 2**63 - 1, -(2**63), -(10**17), 10**18)
NUMERICS = [
    # Groups of four digits, weight of the first, sign, digits after the point.
    struct.pack("!hhHh", 0, 0, 0, 0),
    struct.pack("!hhHhhh", 2, 0, 0, 4, 7, 5000),
    struct.pack("!hhHhh", 1, 9, 0x4000, 0, 9999),
    struct.pack("!hhHhh", 1, 32767, 0, 0, 1),
    struct.pack("!hhHhh", 1, -32768, 0, 32767, 1),
    struct.pack("!hhHh", 0, 0, 0xC000, 0),
    struct.pack("!hhHhh", 1, 0, 0x1234, 0, -1),
    struct.pack("!hhHh", -1, 0, 0, 0),
]
WRONG = [b"", b"\xff", b"x" * 7, b"\0" * 33]

# Type by its OID, texts, binary forms; None is NULL.
INTEGERS = [
    (20, [b"1", b"-7", b"9223372036854775807", b" 3 ", b"x", None], _packed("!q", 0, 1, -1, 2**63 - 1, -(2**63))),
    (23, [b"1", b"-2147483648", b"2147483648", None], _packed("!i", 0, 5, -1, 2**31 - 1, -(2**31))),
    (21, [b"1", b"32768"], _packed("!h", 0, 7, -(2**15))),
    (26, [b"1", b"4294967295"], _packed("!I", 0, 2**32 - 1)),
]
FRACTIONS = [
    (701, [b"0.5", b"NaN", b"-Infinity", b"1e400", None], _packed("!d", 0.0, -0.5, float("nan"), float("inf"), 1e308)),
    (700, [b"0.5", b"1e39"], _packed("!f", 0.25, float("nan"), -1e38)),
    (1700, [b"1.50", b"NaN", b"9" * 40, b"1e-50", b".", None], NUMERICS),
]
TEXTS = [
    (25, [b"a", b"", b"10", b"2015-01-05", "Ünï".encode(), b"\xff\xfe", b"x" * 3000, None], [b"a", b"", b"\xc3\x28"]),
    (1043, [b"ab", None], [b"ab"]),
    (1042, [b"ab  "], [b"ab  "]),
    (19, [b"me"], [b"me" * 40]),
    (18, [b"x"], [b"x"]),
    (705, [b"1", b"a", b"true", b"2015-01-05", None], [b"1", b"a"]),
    (114, [b'{"a": [1]}', b"{", b"null"], [b'{"a": 1}']),
    (3802, [b'{"a": [1]}', b"["], [b'\x01{"a": 1}', b"\x02{}"]),
]
TIMES = [
    (1114, [b"2015-01-05 10:00:00", b"infinity", b"0044-03-15 BC", b"99999-01-01", None], MOMENTS),
    (1184, [b"2015-01-05 10:00:00+02", b"-infinity", b"2015-01-05 10:00 Europe/Berlin"], MOMENTS),
    (1083, [b"10:00", b"24:00:00", b"25:00"], MOMENTS),
    (1266, [b"10:00+02"], [struct.pack("!qi", 36_000_000_000, -7200)]),
]
KINDS = {
    "i": INTEGERS,
    "small": INTEGERS,
    "limit": INTEGERS,
    "n": INTEGERS + FRACTIONS,
    "t": TEXTS,
    "b": [(16, [b"t", b"false", b"maybe", None], [b"\0", b"\1", b"\2"])],
    "d": [(1082, [b"2015-01-05", b"0001-01-01", b"infinity", b"2015-02-30", None], _packed("!i", 0, -800_000, 2**31 - 1, -(2**31)))],
    "ts": TIMES,
    "iv": [(1186, [b"1 day", b"P1Y2M", b"-99999999 years", b"x"], [struct.pack("!qii", 1, 2, 3), struct.pack("!qii", -(2**63), 2**31 - 1, -1)])],
    "y": [(17, [b"\\x00ff", b"\\x0", b"abc", None], [b"", b"\0\xff"])],
    "a": [
        (1016, [b"{1,NULL,3}", b"{}", b"{{1},{2}}", b"{1,", b"[2:3]={1,2}", None], [_array(20, struct.pack("!q", 1), None), struct.pack("!iiI", 0, 0, 20), struct.pack("!iiIii", 1, 0, 20, 2**31 - 1, 1), struct.pack("!iiI", 7, 0, 20)]),
        (1007, [b"{1}"], [_array(23, struct.pack("!i", 1)), _array(20, b"x")]),
    ],
    "ta": [(1009, [b'{a,"b c",NULL}', b'{"', None], [_array(25, b"a", None, b"")])],
}  # fmt: skip
OTHERS = [
    (2950, [b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", b"x"], [bytes(16)]),
    (2205, [b"facts", b"nothing"], _packed("!I", 0, 1)),
    (1182, [b"{2015-01-05}"], [_array(1082, bytes(4))]),
    (1231, [b"{1.5,NULL}"], [_array(1700, NUMERICS[1])]),
    (0, [b"1", b"a", None], [b"\0\0\0\1"]),
    (999_999, [b"1"], [b"1"]),
]
ANY = [one for kind in KINDS.values() for one in kind] + OTHERS
ANY = [(oid, texts, binaries + WRONG[:1]) for oid, texts, binaries in ANY] + [(oid, [b"\xff"], WRONG) for oid, _, _ in ANY]
