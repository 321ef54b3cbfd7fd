"""The reports that `stoa bench report` asks for, statement for statement.

A second writing of `accounts.rs`, `calendar.rs`, `mix.rs` and `report.rs` in crates/stoa-bench: equal
rows, accounts and seeds give equal reports. `reports.py` compares the two before it measures anything.
"""

import math
from bisect import bisect_right
from datetime import date, timedelta
from functools import cache
from itertools import accumulate

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15

FIRST_DAY = date(2024, 12, 1)
DAYS = 396  # thirteen months
FIRST_ACCOUNT = 1_000_000

COLUMNS = ["account_id", "day", "sum(impressions)", "sum(clicks)", "sum(cost)"]


def statement(account, first, last, table="ad_report"):
    """The report's text with these three put in, literals or placeholders."""
    return (
        f"SELECT {', '.join(COLUMNS)} FROM {table} WHERE account_id = {account} "
        f"AND day BETWEEN {first} AND {last} GROUP BY account_id, day ORDER BY day"
    )


def literal(report, table="ad_report"):
    """The text of a report (account, first day, last day)."""
    account, first, last = report
    return statement(account, f"DATE '{first}'", f"DATE '{last}'", table)


def mix(value):
    z = (value + GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Sequence:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = mix(seed & MASK)

    def next(self):
        value = mix(self.state)
        self.state = (self.state + GOLDEN) & MASK
        return value

    def below(self, bound):
        return (self.next() * bound) >> 64

    def unit(self):
        return (self.next() >> 11) / float(1 << 53)


@cache
def account_starts(rows, accounts, seed):
    """Rows of all accounts before each: the account of rank r has a share of 1/r."""
    ranks = list(range(1, accounts + 1))
    sequence = Sequence(seed ^ 0xACC0)
    for last in range(accounts - 1, 0, -1):
        other = sequence.below(last + 1)
        ranks[last], ranks[other] = ranks[other], ranks[last]
    shares = [0.0, *accumulate(1.0 / rank for rank in ranks)]
    total = shares[-1]
    return [min(int(share / total * rows), rows) for share in shares[:-1]]


class Picker:
    """An endless sequence of reports; client `client` of `stoa bench report` has the same."""

    def __init__(self, rows, accounts, seed, client):
        self.starts = account_starts(rows, accounts, seed)
        self.rows = rows
        self.sequence = Sequence(seed * 1_000_003 + client)

    def pick(self, workload):
        """(account, first day, last day), both days inclusive."""
        account = bisect_right(self.starts, self.sequence.below(max(self.rows, 1))) - 1
        days = WORKLOADS[workload](self.sequence)
        if days >= DAYS:
            return self._report(account, 0, DAYS)
        age = int(-math.log(max(self.sequence.unit(), 2.2250738585072014e-308)) * 3.0)
        end = max(DAYS - age, 1)
        return self._report(account, max(end - days, 0), end)

    @staticmethod
    def _report(account, start, end):
        first = FIRST_DAY + timedelta(days=start)
        return (FIRST_ACCOUNT + account, first, FIRST_DAY + timedelta(days=end - 1))


def _recent(sequence):
    kind = sequence.below(10)
    if kind < 3:
        return 1
    if kind < 6:
        return 7
    return 31 if kind < 8 else 1 + sequence.below(31)


# How many days a report is about.
WORKLOADS = {"recent": _recent, "week": lambda _: 7, "months13": lambda _: DAYS}
