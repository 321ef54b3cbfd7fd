"""Statements inside others: what a statement gives must hold for what is built on it.

A planner that knows too much of a subquery (that a column is never NULL, that there is a row, which columns decide
others) answers the subquery rightly and what stands around it wrongly. So each fixed statement is put into queries that
count its rows and its NULLs, and that filter, join and group by a value of its own answer.
"""

import re

from sides import Refusal

QUERY = re.compile(r"(select|with|values|table)\b", re.I)
# What differs from one run to the next.
UNSTABLE = re.compile(r"random|clock_timestamp|now\(|current_|gen_random|txid|pg_backend|pg_table_is_visible|timeofday|nextval|localtime", re.I)
# Rows that no order chooses.
ANY_ROWS = re.compile(r"\b(limit|fetch|offset|distinct on|tablesample)\b", re.I)
COLUMNS_MAX = 4


def is_query(sql):
    """Whether a statement can stand in others, with the same answer each time."""
    return bool(QUERY.match(sql)) and not UNSTABLE.search(sql) and (not ANY_ROWS.search(sql) or "order by" in sql.lower())


def counted(sql, columns):
    """The statement inside one that counts its rows, and the NULLs of each column in three ways."""
    counts = ", ".join(
        f"count({c}), count(*) FILTER (WHERE {c} IS NULL), sum(CASE WHEN {c} IS NOT NULL THEN 1 ELSE 0 END)" for c in columns
    )
    return f"SELECT count(*), {counts} FROM ({sql}) AS q({', '.join(columns)})"


def filtered(sql, columns, column, literal):
    """The statement inside those that filter, join and group by a value of its own answer."""
    q = f"({sql}) AS q({', '.join(columns)})"
    yield f"SELECT count(*) FROM {q} WHERE {column} = {literal}"
    yield f"SELECT count(*) FROM {q} WHERE {column} < {literal} OR {column} IS NULL"
    yield f"SELECT count(*), count({column}) FROM (VALUES ({literal})) AS v(x) LEFT JOIN {q} ON {column} = x"
    yield f"SELECT count(*) FROM {q} GROUP BY {column} HAVING NOT {column} <> {literal}"
    yield f"SELECT count(*) FROM {q} WHERE NOT ({column} IN ({literal}, NULL))"
    yield f"SELECT count(*) FROM (VALUES ({literal})) AS v(x) WHERE x NOT IN (SELECT {column} FROM {q})"
    yield f"SELECT (SELECT count(*) FROM {q} WHERE {column} = x) FROM (VALUES ({literal}), (NULL)) AS v(x)"
    yield f"WITH q({', '.join(columns)}) AS ({sql}) SELECT count(*) FROM q AS a JOIN q AS b ON a.{column} = b.{column}"


def literal(text, name):
    """A value of an answer as the literal of its type, or nothing where there is none in one line."""
    # Sums of floats depend on the order of the rows.
    if text is None or "\\" in text or name[:1].isdigit() or name in ("record", "bytea", "real", "double"):
        return None
    quoted = "'" + text.replace("'", "''") + "'"
    return f"{quoted}::{'text' if name == 'char' else name}"


def statements(postgres, sql, rng, part):
    """The queries around one statement, of those that filter about as large a `part`."""
    answer = postgres.ask(sql)
    if isinstance(answer, Refusal) or not answer.types:
        return
    columns = [f"c{number}" for number in range(len(answer.types))]
    yield counted(sql, columns)
    if not answer.rows:
        return
    row = answer.rows[len(answer.rows) // 2]
    for number, name in enumerate(answer.types[:COLUMNS_MAX]):
        if (value := literal(row[number], name)) is not None:
            for around in filtered(sql, columns, f"c{number}", value):
                if rng.random() < part:
                    yield around
