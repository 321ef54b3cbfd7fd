"""Files in the format of sqllogictest, such as sqlite's and DataFusion's own: each record on both servers.

A record is *the file's* if Stoa answers as the file says, *PostgreSQL's* if both servers say the same and the file
something else, *refused* if only Stoa gives an error, and else it *differs*. Plans (EXPLAIN) are not compared. A statement that Stoa alone refuses sets what
it makes aside, with all records that name it.
"""

import collections
import decimal
import hashlib
import re

from files import TARGET, WORD, bare
from sides import Refusal

# Words of the format behind `query`: how rows are ordered before they are compared.
SORTS = ("nosort", "rowsort", "valuesort")


class Record:
    """A statement or query, and what is expected: rows as lines, or an error."""

    def __init__(self, kind, words, sql, expected, number):
        self.kind, self.words, self.sql, self.expected, self.number = kind, words, sql, expected, number

    @property
    def wants_error(self):
        return "error" in self.words[:1]

    @property
    def sort(self):
        return next((word for word in self.words if word in SORTS), "nosort")


def records(path):
    """The records of a file that are for PostgreSQL or for everybody."""
    lines = path.read_text(errors="replace").splitlines()
    at, skipped, sort = 0, False, ""
    while at < len(lines):
        words = lines[at].split()
        number = at + 1
        at += 1
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "skipif":
            skipped |= words[1].lower() in ("postgresql", "postgres")
        elif words[0] == "onlyif":
            skipped |= words[1].lower() not in ("postgresql", "postgres")
        elif words[0] == "halt" and not skipped:
            return
        elif words[0] == "control":
            sort = words[-1] if words[1:2] == ["sortmode"] else sort
        elif words[0] in ("statement", "query"):
            sql, expected = [], []
            while at < len(lines) and lines[at].strip() and lines[at].strip() != "----":
                sql.append(lines[at])
                at += 1
            if at < len(lines) and lines[at].strip() == "----":
                at += 1
                while at < len(lines) and lines[at].strip():
                    expected.append(lines[at])
                    at += 1
            if not skipped:
                yield Record(words[0], [*words[1:], sort], "\n".join(sql).rstrip(";"), expected, number)
            skipped = False
        elif words[0] in ("halt", "hash-threshold"):
            skipped = False


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def plain(value):
    """A value in one spelling: numbers of twelve digits behind the point without zeros at the end, moments with a blank."""
    if NUMBER.fullmatch(value):
        try:
            number = round(decimal.Decimal(value), 12).normalize()
        except decimal.InvalidOperation:
            return value
        return f"{number + 0:f}"
    value = re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:)", r"\1 \2", value)
    value = re.sub(r"(:\d\d)\.(\d*?)0+$", r"\1.\2", value).removesuffix(".")
    value = re.sub(r"([+-]\d\d):00$|Z$", lambda found: found[1] or "+00", value)
    return {"true": "t", "false": "f"}.get(value, value.removeprefix("\\x"))


def spelled(line):
    """A line as its values, whatever is between them."""
    line = re.sub(r"\[([^\]]*)\]", lambda found: "{" + found[1].replace(", ", ",") + "}", line)
    return [word for value in line.split() for word in plain(value).split()]


def sqlite_value(value, kind):
    """A value as sqlite's own runner writes it."""
    if value is None:
        return "NULL"
    if kind == "I":
        number = {"t": "1", "f": "0"}.get(value, value)
        return str(int(decimal.Decimal(number))) if NUMBER.fullmatch(number) else "0"
    if kind == "R":
        return f"{float(value):.3f}" if NUMBER.fullmatch(value) else value
    return "".join(c if " " <= c <= "~" else "@" for c in value) or "(empty)"


HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")


def is_of_file(record, answer):
    """Whether these rows are those of the file."""
    if record.kind == "statement":
        return True
    kinds = record.words[0] if record.words and record.words[0] not in SORTS else ""
    kinds = kinds.ljust(len(answer.types), "T")
    rows = [[sqlite_value(value, kind) for value, kind in zip(row, kinds)] for row in answer.rows]
    if record.sort == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    if record.sort == "valuesort":
        values.sort()
    if record.expected and (hashed := HASHED.fullmatch(record.expected[0])):
        digest = hashlib.md5("".join(value + "\n" for value in values).encode()).hexdigest()
        return (int(hashed[1]), hashed[2]) == (len(values), digest)
    if values == record.expected:
        return True
    # A row a line, as newer files have it; values have blanks, so they are compared as a whole.
    shown = [
        [word for value in row for word in (["NULL"] if value is None else spelled(value) or ["(empty)"])] for row in answer.rows
    ]
    wanted = [spelled(line) for line in record.expected]
    if record.sort in ("rowsort", "valuesort"):
        shown.sort(), wanted.sort()
    return shown == wanted


class LogicTests:
    """Runs files, and counts what became of their records."""

    def __init__(self, oracle):
        self.oracle = oracle
        self.counts = collections.defaultdict(collections.Counter)
        self.findings = []
        self.refused = collections.defaultdict(list)

    def run(self, path, name):
        aside = set()
        sides = (self.oracle.postgres, self.oracle.stoa)
        for side in sides:
            side.connect()
            side.ask("DROP SCHEMA IF EXISTS files CASCADE")
            side.ask("CREATE SCHEMA files")
            side.ask("SET search_path = files")
            side.ask("SET statement_timeout = '20s'")
        for record in records(path):
            words = {word.lower() for word in WORD.findall(bare(record.sql))}
            expected, actual = (side.ask(record.sql) for side in sides)
            for side in sides:
                side.ask("SET search_path = files")
            verdict = self.verdict(record, expected, actual)
            if record.sql.lower().startswith("explain") and not isinstance(actual, Refusal):
                verdict = "plan"
            if words & aside:
                verdict = "aside"
            elif verdict == "refused" and record.kind == "statement":
                self.put_aside(record.sql, aside)
            self.counts[name][f"{record.kind} {verdict}"] += 1
            if verdict == "refused":
                self.refused[actual.sqlstate + " " + actual.message[:70]].append((name, record))
            elif verdict == "differs":
                self.findings.append((name, record, expected, actual))

    def put_aside(self, sql, aside):
        if target := TARGET.search(bare(sql)):
            aside.add(target[1].split(".")[-1].strip('"').lower())

    @staticmethod
    def verdict(record, expected, actual):
        if isinstance(actual, Refusal):
            if record.wants_error:
                return "file's"
            return "PostgreSQL's" if isinstance(expected, Refusal) else "refused"
        if not record.wants_error and is_of_file(record, actual):
            return "file's"
        if not isinstance(expected, Refusal):
            rows = [expected.rows, actual.rows]
            if record.sort != "nosort":
                rows = [sorted(map(str, of)) for of in rows]
            if rows[0] == rows[1] or [list(map(plain_row, of)) for of in rows][0] == list(map(plain_row, rows[1])):
                return "PostgreSQL's"
        return "differs"

    def report(self, examples):
        for name, record, expected, actual in self.findings[:examples]:
            sql = " ".join(record.sql.split())[:300]
            print(f"\nDIFFERS {name}:{record.number}\n  {sql}\n  file: {record.expected[:4]}\n  Stoa: {shown(actual)}\n  PostgreSQL: {shown(expected)}")
        print("\nrefused by Stoa, and neither by PostgreSQL nor by the file:")
        for why, where in sorted(self.refused.items(), key=lambda item: -len(item[1])):
            name, record = where[0]
            print(f"  {len(where):5} {why}\n        {name}:{record.number} {' '.join(record.sql.split())[:160]}")
        total = collections.Counter()
        for name, counts in self.counts.items():
            print(f"{name:40} {dict(sorted(counts.items()))}")
            total.update(counts)
        print(f"{'all':40} {dict(sorted(total.items()))}")


def plain_row(row):
    return [plain(value) if isinstance(value, str) else value for value in row] if isinstance(row, tuple) else row


def shown(answer):
    return f"{answer.sqlstate} {answer.message[:160]}" if isinstance(answer, Refusal) else str(answer.rows[:4])[:200]
