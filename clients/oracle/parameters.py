"""Statements with parameters, each with the values that it is asked with, by the extended protocol."""

STATEMENTS = [
    ("SELECT n FROM generate_series($1::int, $2::int) AS s(n)", [(1, 5), (5, 1), (-2, 2), (1, None)]),
    ("SELECT n::text FROM generate_series($1::bigint, $2, $3) AS s(n)", [(1, 9, 4), (9, 1, -3), (1, 9, 0)]),
    (
        "SELECT n FROM generate_series($1::timestamp, $2, INTERVAL '1 month') AS s(n)",
        [("2024-01-31", "2024-05-01"), ("2024-05-01", "2024-01-31")],
    ),
    ("SELECT count(*) FROM facts WHERE i IN (SELECT n FROM generate_series($1::int, 3) AS s(n))", [(0,), (4,)]),
    ("SELECT x, pg_typeof(x)::text FROM (VALUES ($1::double precision), (1.5)) v(x)", [("1e-300",), ("NaN",), (None,)]),
    ("SELECT x FROM (VALUES ($1), (2.5), (0.5::double precision)) v(x)", [("7",), ("-Infinity",), (None,), ("x",)]),
    ("SELECT id FROM facts WHERE i IN ($1::int, $2) AND i IN ($3, $4::int)", [(1, 2, 2, 3), (1, 2, 3, 3), (None, 2, 2, 2)]),
    ("SELECT id FROM facts WHERE i IN ($1::int, 2, 3, 4, 5) AND i NOT IN (3, $2::int, 7, 8)", [(1, 2), (1, 1), (7, None)]),
    ("SELECT id FROM facts WHERE s NOT IN ($1, 'a') OR s NOT IN ($2, 'b', 'c', 'ab', $1)", [("a", "a"), ("b", "x"), (None, "ab")]),
    ("SELECT pg_typeof($1::numeric)::text, pg_typeof($2::date[])::text", [("1.5", "{2024-02-29}"), (None, None)]),
]


def statements():
    """Each statement with one list of values."""
    return ((sql, values) for sql, lists in STATEMENTS for values in lists)
