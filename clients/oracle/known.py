"""Where Stoa differs from PostgreSQL on purpose, or must: each with its reason, and with an example.

Every entry is documented in docs/sql.md under "Where Stoa differs from PostgreSQL" (`oracle.py` looks), and
whether its example still differs is told with each run. A generated statement that differs is made
small first; it is excused only if what remains matches an entry.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A difference: `how` (as compare.Verdict says it) and the statement match; `docs` is in docs/sql.md."""

    how: str
    statement: str
    docs: str
    example: str

    def matches(self, verdict, sql):
        return bool(re.fullmatch(self.how, verdict.how) and re.search(self.statement, sql, re.I))


KNOWN = [
    Known(
        how=r"type numeric double",
        statement=r"[0-9]e[+-]?[0-9]",
        docs="Numbers with an exponent are doubles",
        example="SELECT 1e2",
    ),
    Known(
        how=r"type (bigint|integer) numeric",
        statement=r"\b(row_number|rank|dense_rank|ntile)\(",
        docs="`row_number`, `rank`, `dense_rank` and `ntile` are `numeric`",
        example="SELECT rank() OVER (ORDER BY i) FROM facts",
    ),
    Known(
        how=r"error 22(P02|007)",
        statement=r"'(Infinity|NaN)'",
        docs="`'Infinity'` and `'NaN'` are values of floating point only",
        example="SELECT id FROM pairs WHERE p = 'NaN'",
    ),
    Known(
        how=r"answers 42883",
        statement=r"FROM pairs",
        docs="Numbers and dates, and others that PostgreSQL does not compare, may be compared",
        example="SELECT id FROM pairs WHERE day = 1",
    ),
    Known(
        how=r"error 42\w+ for 22P02",
        statement=r"\bb\b",
        docs="A text beside a `boolean` is an error of types, whatever it says",
        example="SELECT id, b < '1e2' FROM pairs",
    ),
    Known(
        how=r"answers (42601|42P10)",
        statement=r"ORDER BY",
        docs="A constant in ORDER BY that is no position orders nothing",
        example="SELECT id FROM facts ORDER BY 'a'",
    ),
    Known(
        how=r"value \w+",
        statement=r"ORDER BY.*\b(round|ceil|ceiling|trunc)\((\w+\.)?d\)",
        docs="-0.0 comes before 0.0 in ORDER BY",
        example="SELECT true, id FROM facts ORDER BY u, round(d) NULLS FIRST, id OFFSET 50",
    ),
    Known(
        how=r"value text",
        statement=r"(CAST\(|\|\| )(CASE|coalesce\(|greatest\(|least\().*(\d|\b[pq]\b)|\|\| \(.* / ",
        docs="A `numeric` column has one scale",
        example="SELECT CAST(coalesce(1, 7.0) AS text) FROM facts",
    ),
    Known(
        how=r"answers 42804",
        statement=r"\b(first_value|last_value|nth_value|lag|lead)\('",
        docs="`first_value('a')` and its like take a text for `text`",
        example="SELECT id, first_value('a') OVER (ORDER BY id) FROM facts",
    ),
]


def known(verdict, sql):
    """The entry that excuses a difference."""
    return next((entry for entry in KNOWN if entry.matches(verdict, sql)), None)
