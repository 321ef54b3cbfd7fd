"""Where Stoa differs from PostgreSQL on purpose, or must: each with its reason, and with an example.

Every entry is documented in docs/sql.md under "Where Stoa differs from PostgreSQL" (`oracle.py` looks), and
its example must still differ, so that the list stays true. A generated statement that differs is made
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


KNOWN = []


def known(verdict, sql):
    """The entry that excuses a difference."""
    return next((entry for entry in KNOWN if entry.matches(verdict, sql)), None)
