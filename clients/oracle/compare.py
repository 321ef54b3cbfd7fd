"""Whether two answers are the same, as far as Stoa promises.

`agree`: equal names and types, equal rows; or both refuse for the same class of reason. `refused`: PostgreSQL
answers, Stoa says that it does not have this. `differ`: everything else, with a word that says how.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sides import Refusal

# Doubles may be summed in another order.
TOLERANCE = 1e-12
# So are the last digits of a real.
TOLERANCE_REAL = 1e-5

# How Stoa says that it does not have something: not supported, no such function or type, a syntax
# that it does not know, columns of one name.
NOT_THERE = {"0A000", "42883", "42704", "42601", "42701", "42702"}

# Of rows in no order, so many are put beside each other to tell what differs.
ROWS_PAIRED = 20

# Stoa stores small integers as integers.
WIDTHS = {"smallint": "integer", "smallint[]": "integer[]"}

# Classes of errors which mean the same to a program: a wrong value, a wrong statement.
SAME_CLASS = {"42": {"42", "0A", "22"}, "22": {"22", "0A"}, "21": {"21", "42", "0A"}, "0A": {"0A", "42"}}


@dataclass(frozen=True)
class Verdict:
    """How a statement's two answers compare; `how` groups differences of one kind."""

    word: str
    how: str = ""
    detail: str = ""


AGREE = Verdict("agree")


def compare(expected, actual, ordered=False):
    """`expected` is PostgreSQL's answer, `actual` Stoa's."""
    if isinstance(expected, Refusal):
        return compare_errors(expected, actual)
    if isinstance(actual, Refusal):
        detail = f"{actual.sqlstate} {actual.message}"
        word = "refused" if actual.sqlstate in NOT_THERE else "differ"
        return Verdict(word, f"error {actual.sqlstate}", detail)
    if len(expected.types) != len(actual.types):
        return Verdict("differ", "columns", f"{len(expected.types)} and {len(actual.types)} columns")
    for column, (one, other) in enumerate(zip(expected.types, actual.types), 1):
        if WIDTHS.get(one, one) != WIDTHS.get(other, other):
            return Verdict("differ", f"type {one} {other}", f"column {column} is {one}, not {other}")
    for column, (one, other) in enumerate(zip(expected.names, actual.names), 1):
        if one != other:
            return Verdict("differ", "name", f"column {column} is called {one}, not {other}")
    return compare_rows(expected, actual, ordered)


def compare_errors(expected, actual):
    said = f"{expected.sqlstate} {expected.message}"
    if not isinstance(actual, Refusal):
        shown = actual.rows[:3]
        return Verdict("differ", f"answers {expected.sqlstate}", f"PostgreSQL refuses: {said}; got {shown}")
    allowed = SAME_CLASS.get(expected.sqlstate[:2], {expected.sqlstate[:2]})
    if actual.sqlstate in NOT_THERE:
        return AGREE
    if actual.sqlstate[:2] in allowed:
        return AGREE
    how = f"error {actual.sqlstate} for {expected.sqlstate}"
    return Verdict("differ", how, f"{said}; got {actual.sqlstate} {actual.message}")


def compare_rows(expected, actual, ordered):
    if len(expected.rows) != len(actual.rows):
        return Verdict("differ", "rows", f"{len(expected.rows)} rows, not {len(actual.rows)}")
    if ordered:
        return first_difference(expected.rows, actual.rows, expected.types)
    one, other = in_order(expected.rows, expected.types), in_order(actual.rows, actual.types)
    verdict = first_difference(one, other, expected.types)
    if verdict == AGREE:
        return AGREE
    found = first_difference(*most_alike(one, other, expected.types), expected.types)
    return verdict if found == AGREE else found


def first_difference(expected, actual, types):
    for number, (row, got) in enumerate(zip(expected, actual), 1):
        for column, kind in enumerate(types):
            if not same(row[column], got[column], kind):
                place = f"row {number}, column {column + 1} ({kind})"
                detail = f"{place}: {row[column]!r} expected, {got[column]!r} found"
                if kind == "double" and may_be_rounded(row[column], got[column]):
                    return Verdict("differ", "value double of large ones", detail)
                zeros = " zeros" if kind == "text" and but_for_zeros(row[column], got[column]) else ""
                return Verdict("differ", f"value {kind}{zeros}", detail)
    return AGREE


def most_alike(expected, actual, types):
    """Some rows that only one side has, each beside the one of the other side that has most of its values."""
    one, other = Counter(expected), Counter(actual)
    missing, added = list((one - other).elements())[:ROWS_PAIRED], list((other - one).elements())

    def alike(row, got):
        return sum(same(value, found, kind) for value, found, kind in zip(row, got, types))

    return missing, [max(added, key=lambda got: alike(row, got)) for row in missing]


def may_be_rounded(one, other):
    """Whether doubles differ by no more than what is lost beside the largest value of the tables, 1e15."""
    return None not in (one, other) and abs(float(one) - float(other)) <= 1


def but_for_zeros(one, other):
    """Whether texts are the same but for zeros at the end of decimals in them."""

    def stripped(text):
        return re.sub(r"\.(?!\d)", "", re.sub(r"(\d\.\d*?)0+(?!\d)", r"\1", text or ""))

    return stripped(one) == stripped(other)


def in_order(rows, types):
    """Rows in an order that does not depend on digits that may differ."""

    def key(row):
        keys = [sort_key(value, kind) for value, kind in zip(row, types)]
        # Last digits count only where the rows are alike but for them.
        return [key[:2] for key in keys], [key[2] for key in keys]

    return sorted(rows, key=key)


def sort_key(value, kind):
    if value is None:
        return (1, 0, 0)
    try:
        if kind in ("integer", "bigint", "smallint"):
            return (0, int(value), 0)
        if kind in ("numeric", "double", "real") and math.isfinite(number := float(value)):
            # What is left of 0 after rounding is 0.
            kept = 0.0 if kind != "numeric" and abs(number) < 1e-13 else number
            return (0, float(f"{kept:.10g}" if kind != "real" else f"{kept:.4g}"), number)
    except ValueError:
        pass
    # What is no number comes behind all numbers of its column.
    return (0.5, value, 0)


def same(one, other, kind):
    if one is None or other is None or one == other:
        return one == other
    try:
        if kind == "numeric":
            return same_decimals(one, other)
        if kind in ("double", "real"):
            return same_floats(float(one), float(other), TOLERANCE if kind == "double" else TOLERANCE_REAL)
        if kind in ("double[]", "real[]", "numeric[]"):
            tolerance = TOLERANCE if kind != "real[]" else TOLERANCE_REAL
            ones, others = one.strip("{}").split(","), other.strip("{}").split(",")
            pairs = zip(ones, others)
            return len(ones) == len(others) and all(
                a == b or "NULL" not in (a, b) and same_floats(float(a), float(b), tolerance) for a, b in pairs
            )
    except (ValueError, InvalidOperation):
        return False
    return False


def same_decimals(one, other):
    """Equal numbers; the digits behind the point that are shown are looked at by `pairs`."""
    return Decimal(one) == Decimal(other)


def same_floats(one, other, tolerance):
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if math.isinf(one) or math.isinf(other):
        return one == other
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-15)
