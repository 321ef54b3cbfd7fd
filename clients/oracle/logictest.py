"""Files in the format of sqllogictest, such as sqlite's and DataFusion's own: each record on both servers.

A record is *the file's* if Stoa answers as the file says, *PostgreSQL's* if both servers answer the same and the file
something else, *both refuse* if the file wants an answer and neither gives one, *refused* if only Stoa gives an error, *differs*
if PostgreSQL answers otherwise, and *alone* if Stoa answers otherwise than the file and PostgreSQL gives an error. Tables of CSV files, and `CREATE TABLE t (a INT) AS query`, are made by statements that both servers know. Plans (EXPLAIN) are not compared. What a statement makes
that is refused is set aside, with all records that name it.
"""

import collections
import datetime
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

MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d(?::?\d\d)?)?(?![\d:])")

CLOCK = r"[+-]?\d+:\d\d:\d\d(?:\.\d+)?"

# `1 year 2 mons 3 days 04:05:06`, or as the engine writes it, `14 mons 3 days 4 hours 5 mins 6.000 secs`.
SPAN = re.compile(rf"(?:(?:[+-]?[\d.]+ (?:years?|mons?|days?|hours?|mins?|secs?)|{CLOCK})(?:\s+|$|(?=[,\]}}])))+")

# Microseconds of the units of an interval that have a length of their own; others are months or days.
LENGTHS = {"hour": 3_600_000_000, "min": 60_000_000, "sec": 1_000_000}


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
    return {"true": "t", "false": "f", "null": "NULL"}.get(value, value.removeprefix("\\x"))


def moment(found):
    """A moment at UTC, to the microsecond, without the zone: PostgreSQL's and Stoa's are no finer."""
    day, clock, zone = found.groups()
    try:
        at = datetime.datetime.fromisoformat(f"{day} {clock}"[:26])
    except ValueError:
        return found[0]
    if zone and zone != "Z":
        sign = -1 if zone[0] == "-" else 1
        digits = zone[1:].replace(":", "").ljust(4, "0")
        at -= sign * datetime.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return at.strftime("%Y-%m-%d@%H-%M-%S.%f")


def span(found):
    """An interval as months, days and microseconds."""
    months, days, micros = 0, 0, decimal.Decimal(0)
    for number, unit, clock in re.findall(rf"([+-]?[\d.]+) (year|mon|day|hour|min|sec)s?\b|({CLOCK})", found[0]):
        if clock:
            hours, minutes, seconds = clock.lstrip("+-").split(":")
            length = (int(hours) * 60 + int(minutes)) * 60 + decimal.Decimal(seconds)
            micros += length * (-1_000_000 if clock[0] == "-" else 1_000_000)
        elif unit in LENGTHS:
            micros += decimal.Decimal(number) * LENGTHS[unit]
        elif unit == "day":
            days += int(decimal.Decimal(number))
        else:
            months += int(decimal.Decimal(number)) * (12 if unit == "year" else 1)
    return f"{months}m/{days}d/{int(micros)}us "


def spelled(line):
    """A line as its values and brackets, whatever is between them. Lists, records and maps are in brackets of one kind."""
    line = SPAN.sub(span, MOMENT.sub(moment, line))
    line = re.sub(r'"([^"]*)":|\b(\w+): ', lambda found: f"{found[1] or found[2]} ", line)
    line = re.sub(r"[\[{]", " ( ", re.sub(r"[\]}]", " ) ", line)).replace(",", " ").replace('"', "")
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


EXTERNAL = re.compile(
    r"CREATE\s+(?:UNBOUNDED\s+)?EXTERNAL\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)\s*\((.*?)\)\s*STORED\s+AS\s+CSV\b(.*)",
    re.IGNORECASE | re.DOTALL,
)

EXTERNAL_NAME = re.compile(r"EXTERNAL\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w.\"]+)", re.IGNORECASE)

# The engine's types that neither server has by these names, and what holds their values.
ENGINE_TYPES = (
    ("BIGINT UNSIGNED", "numeric(20, 0)"),
    ("INT UNSIGNED", "bigint"),
    ("SMALLINT UNSIGNED", "integer"),
    ("TINYINT UNSIGNED", "smallint"),
    ("TINYINT", "smallint"),
    ("STRING", "text"),
    ("DATETIME", "timestamp"),
    ("DOUBLE", "double precision"),
    ("FLOAT", "real"),
)


TYPED_AS = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w.]+)\s*(\(.*)", re.IGNORECASE | re.DOTALL)


def typed_table(sql):
    """Statements for `CREATE TABLE t (a INT) AS query`, which neither server has: one that makes it, one that fills it."""
    found = TYPED_AS.match(sql)
    if not found:
        return None
    depth = 0
    for at, character in enumerate(found[2]):
        depth += (character == "(") - (character == ")")
        if not depth:
            columns, rest = found[2][: at + 1], found[2][at + 1 :]
            break
    else:
        return None
    filled = re.match(r"\s*AS\b(.*)", rest, re.IGNORECASE | re.DOTALL)
    is_typed = re.match(r'\(\s*[\w"]+\s+\w', columns)
    return (f"CREATE TABLE {found[1]} {in_own_types(columns)}", f"INSERT INTO {found[1]} {filled[1]}") if filled and is_typed else None


def in_own_types(columns):
    for name, ours in ENGINE_TYPES:
        columns = re.sub(rf"\b{name}\b(?!\s+PRECISION)", ours, columns, flags=re.IGNORECASE)
    return columns


def external(sql, root):
    """Statements that make and fill the table of a CSV file, and the file's text; `None` for other statements."""
    found = EXTERNAL.search(sql)
    location = found and re.search(r"LOCATION\s+'([^']+)'", found[3], re.IGNORECASE)
    if not location or not (path := root / location[1]).is_file():
        return None
    header = re.search(r"has_header'?\s+'?(\w+)", found[3], re.IGNORECASE)
    options = "FORMAT csv, HEADER true" if header and header[1].lower() == "true" else "FORMAT csv"
    return f"CREATE TABLE {found[1]} ({in_own_types(found[2])})", f"COPY {found[1]} FROM STDIN ({options})", path.read_bytes()


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
            expected, actual = (self.ask(side, record.sql, path) for side in sides)
            for side in sides:
                side.ask("SET search_path = files")
            verdict = self.verdict(record, expected, actual)
            if record.sql.lower().startswith("explain") and not isinstance(actual, Refusal):
                verdict = "plan"
            if record.kind == "statement" and not isinstance(actual, Refusal):
                aside -= made_by(record.sql)
            if words & aside:
                verdict = "aside"
            elif verdict in ("refused", "both refuse") and record.kind == "statement":
                aside |= made_by(record.sql)
            self.counts[name][f"{record.kind} {verdict}"] += 1
            if verdict == "both refuse":
                self.refused["(PostgreSQL, too) " + actual.sqlstate + " " + actual.message[:50]].append((name, record))
            elif verdict == "refused":
                self.refused[actual.sqlstate + " " + actual.message[:70]].append((name, record))
            elif verdict in ("differs", "alone"):
                self.findings.append((name, record, expected, actual))

    @staticmethod
    def ask(side, sql, path):
        folder = next((of for of in path.parents if of.name == "test_files"), path.parent)
        if filled := external(sql, folder.parent):
            create, copy, rows = filled
            created = side.ask(create)
            return created if isinstance(created, Refusal) else side.copy(copy, rows)
        if made := typed_table(sql):
            created = side.ask(made[0])
            return created if isinstance(created, Refusal) else side.ask(made[1])
        return side.ask(sql)

    @staticmethod
    def verdict(record, expected, actual):
        if isinstance(actual, Refusal):
            if record.wants_error:
                return "file's"
            return "both refuse" if isinstance(expected, Refusal) else "refused"
        if not record.wants_error and is_of_file(record, actual):
            return "file's"
        if not isinstance(expected, Refusal):
            rows = [expected.rows, actual.rows]
            if record.sort != "nosort":
                rows = [sorted(map(str, of)) for of in rows]
            if rows[0] == rows[1] or [list(map(plain_row, of)) for of in rows][0] == list(map(plain_row, rows[1])):
                return "PostgreSQL's"
        return "alone" if isinstance(expected, Refusal) else "differs"

    def report(self, examples):
        # What PostgreSQL answers comes first: there Stoa may be wrong.
        self.findings.sort(key=lambda finding: isinstance(finding[2], Refusal))
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
        alone = collections.Counter(why_alone(*finding) for finding in self.findings if isinstance(finding[2], Refusal))
        print("\nanswered by Stoa alone, and otherwise than by the file:")
        for why, count in alone.most_common():
            print(f"  {count:5} {why}")


def why_alone(_, record, expected, __):
    """Why PostgreSQL has no answer: functions and types that are the engine's own, syntax that PostgreSQL does not read, ..."""
    if record.wants_error:
        return "the file wants an error"
    named = re.search(r"function (\w+)\(", expected.message)
    if expected.sqlstate == "42883" and named:
        return f"42883 function {named[1]}"
    return expected.sqlstate + " " + re.sub(r"\"[^\"]*\"", "\"…\"", expected.message.splitlines()[0])[:60]


def made_by(sql):
    """The name of what a statement makes or fills, as a set."""
    target = EXTERNAL_NAME.search(sql) or TARGET.search(bare(sql))
    return {target[1].split(".")[-1].strip('"').lower()} if target else set()


def plain_row(row):
    return [plain(value) if isinstance(value, str) else value for value in row] if isinstance(row, tuple) else row


def shown(answer):
    return f"{answer.sqlstate} {answer.message[:160]}" if isinstance(answer, Refusal) else str(answer.rows[:4])[:200]
