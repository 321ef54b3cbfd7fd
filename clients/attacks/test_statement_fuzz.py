"""Statements of a grammar, deep and wide: each is answered or refused, and the server goes on.

Every statement has `statement_timeout`; what a statement may take of memory and stack is the server's
to bound. Errors of class XX are defects, and so is a connection that the server closes: one fails the
suite, with the seed that repeats it.
"""

from collections import Counter

import wire
from conftest import number
from crowd import crowd
from grammar import TABLES
from statements import Defect, Statement, answers

FIRST, COUNT = number("SEED", 1), number("STATEMENTS", 200)
OPTIONS = f"-c statement_timeout={number('TIMEOUT_MS', 2000)}"
# Bytes and statements that are sent before their answers are read; the server reads further than that.
AHEAD_BYTES, AHEAD = 1 << 16, 32


class Asker:
    """A session that is sent many statements at once."""

    def __init__(self, port):
        self.port = port
        self.session = None

    def take(self, seeds):
        done, defects, waiting, size = Counter(), [], [], 0
        for seed in seeds:
            waiting.append(Statement(seed))
            size += sum(map(len, waiting[-1].messages))
            if len(waiting) == AHEAD or size > AHEAD_BYTES or seed == seeds[-1]:
                while waiting:
                    waiting = self.ask(waiting, done, defects)
                size = 0
        return done, defects

    def ask(self, statements, done, defects):
        """Statements that are left, because the connection ended before."""
        if self.session is None:
            self.session = wire.Postgres(self.port, options=OPTIONS)
        messages = [message for statement in statements for message in statement.messages]
        try:
            try:
                self.session.sock.sendall(b"".join(messages))
            except ConnectionError:
                # The answers tell how far it came.
                pass
            errors = answers(self.session.sock, len(messages))
        except Defect as defect:
            self.session.close()
            self.session = None
            return self.ended(statements, defect, done, defects)
        for statement in statements:
            found, errors = errors[: len(statement.messages)], errors[len(statement.messages) :]
            done["answered"] += found[0] is None
            done["refused"] += found[0] is not None
            done["done"] += 1
            for at, error in enumerate(found):
                if error and is_defect(*error):
                    text = statement.texts[min(at, len(statement.texts) - 1)]
                    defects.append((f"{error[0]}: {error[1][:500]}", f"seed {statement.seed}: {text[:1500]}"))
        return []

    def ended(self, statements, defect, done, defects):
        answered = defect.answered
        for number_of, statement in enumerate(statements):
            answered -= len(statement.messages)
            if answered < 0:
                text = f"seed {statement.seed}: {defect}: {'; '.join(statement.texts)[:1500]}"
                if str(defect) == "no end" or is_dead(self.port):
                    raise AssertionError(text)
                defects.append((str(defect), text))
                done["done"] += number_of + 1
                return statements[number_of + 1 :]
        return []


def is_defect(sqlstate, message):
    return sqlstate.startswith("XX") or "likely caused by a bug" in message


def is_dead(port):
    try:
        wire.connect(port).close()
        return False
    except OSError:
        return True


def test_statements_of_the_grammar_end(server, say):
    victim = server()
    victim.fill(TABLES)
    make = lambda: Asker(victim.ports["pg"])  # noqa: E731
    sums, defects = crowd(victim, say, make, FIRST, COUNT, last=FIRST + COUNT)
    assert not defects, defects
    assert sums["done"] == COUNT
    assert sums["answered"] >= COUNT // 5, "the grammar asks for what can be answered"
    victim.is_well()
