"""Files of statements, such as PostgreSQL's own regression tests: each statement on both servers, in the order of the file.

What psql does is done here: variables (`\\set`, `:'name'`), and rows for COPY. A table that Stoa could not make or fill is
set aside, and so is each statement that names it: its answer would say nothing.
"""

import collections
import pathlib
import re

import known
from compare import compare
from psycopg import pq
from sides import Refusal

QUOTED = re.compile(r"\$(\w*)\$.*?\$\1\$|'(?:[^'])*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.S)
ESCAPED = re.compile(r"[eE]'(?:[^'\\]|\\.|'')*'", re.S)
WORD = re.compile(r"[a-z_][a-z0-9_$]*", re.I)

# What makes or changes something, whose failure on one side only sets it aside.
CHANGES = {
    "alter", "copy", "create", "declare", "delete", "drop", "insert", "merge", "prepare", "select", "set", "truncate", "update", "with",
}  # fmt: skip
TARGET = re.compile(
    r"^(?:create\s+(?:or\s+replace\s+)?(?:(?:local|global)\s+)?(?:temp(?:orary)?\s+|unlogged\s+|unique\s+|recursive\s+|materialized\s+)*"
    r"(?:table|view|index|function|procedure|type|domain|sequence|schema|operator|aggregate|cast|rule|trigger|role|user)\s+"
    r"(?:if\s+not\s+exists\s+)?|insert\s+into\s+|update\s+(?:only\s+)?|delete\s+from\s+(?:only\s+)?|copy\s+|merge\s+into\s+(?:only\s+)?"
    r"|alter\s+table\s+(?:only\s+)?|truncate\s+(?:table\s+)?|declare\s+|prepare\s+)([\w.\"]+)",
    re.I,
)


def statements(text):
    """Statements, lines of psql's commands, and the rows of COPY FROM STDIN: one of each, or nothing."""
    at, start, depth = 0, 0, 0
    while at < len(text):
        here, before = text[at], text[at - 1] if at else " "
        escaped = None if before.isalnum() or before == "_" else ESCAPED.match(text, at)
        if quoted := escaped or QUOTED.match(text, at):
            at = quoted.end()
        elif here == "\\" and depth == 0:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            yield text[start:at].strip(), text[at:end].strip(), None
            at = start = end
        elif here == ";" and depth == 0:
            statement, at = text[start:at].strip(), at + 1
            rows = None
            if re.search(r"\bcopy\b.*\bfrom\s+stdin\b", bare(statement), re.I | re.S):
                begin = text.find("\n", at) + 1
                end = text.find("\n\\.", begin - 1)
                rows = text[begin : end + 1] if end >= begin else ""
                at = end + 3
            yield statement, "", rows
            start = at
        else:
            depth = max(depth + (here == "(") - (here == ")"), 0)
            at += 1
    yield text[start:].strip(), "", None


def bare(statement):
    """Without comments and quoted texts."""
    return QUOTED.sub(lambda found: found[0] if found[0][0] == '"' else " ", ESCAPED.sub(" ", statement)).strip()


class Files:
    """Runs files, and counts how their statements compare."""

    def __init__(self, oracle, sources):
        self.oracle = oracle
        self.counts = collections.defaultdict(collections.Counter)
        self.findings = []
        self.refused = collections.Counter()
        self.examples = {}
        # Names whose contents are not the same on both.
        self.aside = set()
        self.variables = {"abs_srcdir": str(sources)}

    def run(self, path):
        for side in (self.oracle.postgres, self.oracle.stoa):
            side.connect()
        # What PostgreSQL refuses may run for ever.
        self.oracle.stoa.connection.exec_(b"SET statement_timeout = '20s'")
        for statement, command, rows in statements(path.read_text(errors="replace")):
            if command.startswith("\\set "):
                self.set(command.split(None, 2)[1:])
            elif bare(statement) and not command:
                self.one(path.stem, statement, rows)

    def set(self, words):
        parts = re.findall(r":'?(\w+)'?|'([^']*)'|(\S+)", words[1] if len(words) > 1 else "")
        self.variables[words[0]] = "".join(
            self.variables.get(name, "") or text or other for name, text, other in parts
        )

    def expanded(self, statement):
        """With the values of psql's variables; `None` where one has none."""
        missing = []

        def value(found):
            text = self.variables.get(found[2])
            if text is None:
                missing.append(found[2])
            return f"'{text}'" if found[1] else str(text)

        text = re.sub(r"(?<![:\w]):('?)([a-z_]\w*)\1", value, statement)
        return None if missing else text

    def one(self, file, statement, rows):
        words = {word.lower() for word in WORD.findall(bare(statement))}
        verb = bare(statement).split(None, 1)[0].lower()
        has_variables = re.search(r"(?<![:\w]):[a-z_]", bare(statement)) or re.search(r"(?<![:\w]):'", statement)
        text = self.expanded(statement) if has_variables else statement
        if text is None:
            return
        if copied := re.fullmatch(r"copy\s+(\S+)\s+from\s+'(.*)'(.*)", text.strip(), re.I | re.S):
            text = f"COPY {copied[1]} FROM STDIN{copied[3]}"
            path = pathlib.Path(copied[2])
            # What an earlier statement would have written is not there.
            if not path.is_file():
                self.counts[file]["aside"] += 1
                self.put_aside(text)
                return
            rows = path.read_text()
        expected, actual = (ask(side, text, rows) for side in (self.oracle.postgres, self.oracle.stoa))
        if words & self.aside:
            self.counts[file]["aside"] += 1
            self.put_aside(text)
            return
        tail = " ".join(bare(text).lower().split()).rsplit(")", 1)[-1]
        verdict = compare(expected, actual, " order by " in tail)
        if isinstance(expected, Refusal) != isinstance(actual, Refusal) and verb in CHANGES:
            self.put_aside(text)
        if verdict.word == "differ" and known.known(verdict, text):
            self.counts[file]["known"] += 1
            return
        self.counts[file][verdict.word] += 1
        if verdict.word == "differ":
            self.findings.append((file, verdict, text))
        elif verdict.word == "refused":
            key = verdict.detail[:90]
            self.refused[key] += 1
            self.examples.setdefault(key, (file, text))

    def put_aside(self, text):
        """What a statement makes or changes is not the same any more."""
        if target := TARGET.search(bare(text)):
            self.aside.add(target[1].split(".")[-1].strip('"').lower())

    def report(self):
        for file, verdict, text in self.findings:
            print(f"\nDIFFERS {file}: {verdict.how}\n  {' '.join(text.split())[:400]}\n  {verdict.detail[:300]}")
        print("\nrefused by Stoa:")
        for key, count in self.refused.most_common(60):
            file, text = self.examples[key]
            print(f"  {count:5} {key}\n        {file}: {' '.join(text.split())[:160]}")
        total = collections.Counter()
        for file, counts in self.counts.items():
            print(f"{file:24} {dict(counts)}")
            total.update(counts)
        print(f"{'all':24} {dict(total)}")


def ask(side, sql, rows):
    """What a server answers; rows go to it for COPY FROM, those of COPY TO are not looked at."""
    result = side.connection.exec_(sql.encode())
    if result.status == pq.ExecStatus.COPY_IN:
        side.connection.put_copy_data((rows or "").encode())
        side.connection.put_copy_end()
        result = side.connection.get_result()
        while side.connection.get_result():
            pass
    if result.status == pq.ExecStatus.COPY_OUT:
        while side.connection.get_copy_data(0)[0] > 0:
            pass
        result = side.connection.get_result() or result
    return side.outcome(result)
