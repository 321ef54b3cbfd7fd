"""A grammar of statements: from the seed of a statement, always the same text.

Rules are templates; `{kind}` in one stands for any template of that kind. Values are mostly of the type
that is asked for, and now and then of another, for the type checker. All relations have the columns of
`facts`, so that any expression can stand anywhere.
"""

import random
import re

import command_rules
import query_rules
import value_rules

# One table with a column of every type, and one to join it with.
TABLES = """
CREATE TABLE facts (k int, i bigint, s int, r real, f double precision, n numeric(20,4), t text, v text,
  b boolean, d date, ts timestamp, tz timestamp with time zone, u uuid, y bytea, a bigint[], ta text[]);
INSERT INTO facts VALUES
  (1, 1, 1, 0.5, 0.25, 1.5, 'a', 'abc', true, '2015-01-05', '2015-01-05 10:00:00', '2015-01-05 10:00:00+00',
   'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x00ff', ARRAY[1, 2, NULL], ARRAY['a', '']),
  (2, -7, 0, -2, 1e300, -99999999.9999, '', '10', false, '1969-12-31', '1969-12-31 23:59:59.999',
   '2024-02-29 12:00:00+02', '00000000-0000-0000-0000-000000000000', '', ARRAY[0], ARRAY['x y']),
  (3, 9223372036854775807, 2147483647, 16, -0.5, 0, 'Ünï', '50%', NULL, '9999-12-31',
   '2262-04-11 23:47:16', '1677-09-22 00:00:00+00', NULL, '\\xdeadbeef', NULL, NULL),
  (4, -9223372036854775808, -2147483648, NULL, 0, 9999999999999999.9999, 'ab', NULL, true, '0001-01-01',
   '0001-01-01 00:00:00', '2000-01-01 00:00:00+00', NULL, NULL, ARRAY[9223372036854775807, -1], ARRAY['b', NULL]);
INSERT INTO facts (k) VALUES (5);
FLUSH TABLE facts;
INSERT INTO facts SELECT k + 10, k, s % 7, r, 0.5, 2, t || 'z', v, NOT b, d, ts, tz, u, y, a, ta FROM facts WHERE k < 4;
CREATE TABLE few (fk bigint, fn numeric(10,2), ft text);
INSERT INTO few VALUES (1, 1.00, 'a'), (2, NULL, 'b'), (NULL, 2.50, NULL), (2, 2.50, 'a');
CREATE TABLE scratch (k bigint, t text, d date, n numeric(12,3)) PARTITIONED BY (bucket(2, k))
"""

# Kinds that may stand for each other, though not rightly, and how often they do.
NOISE = 0.02
WRONG = ["wrong", "wrong", "n", "i", "t", "b", "d", "ts", "iv", "y", "a", "ta", "e"]
# Kinds that parameters may have.
PARAMETERS = {"n", "i", "t", "b", "d", "ts", "iv", "y", "a", "ta", "e", "small", "limit"}
PLACE = re.compile(r"\{([a-z]\w*)\}")


def _templates(text):
    """The templates of a rule, each a text or its parts in turn: text, kind, text, …"""
    lines = [line.strip() for line in text.strip().splitlines()] if "\n" in text else text.split()
    found = [PLACE.split(line) for line in lines]
    return [parts[0] if len(parts) == 1 else parts for parts in found]


RULES = {**value_rules.RULES, **query_rules.RULES, **command_rules.RULES}
ALL = {kind: _templates(text) for kind, text in RULES.items()}
# What stands where nothing deeper may: templates without parts, or else the first, which is the simplest.
LEAVES = {kind: [one for one in templates if isinstance(one, str)] or templates[:1] for kind, templates in ALL.items()}
assert all(kind in ALL for rule in ALL.values() for one in rule if not isinstance(one, str) for kind in one[1::2])


class Grammar:
    """Draws texts; `parameters` has the kinds of $1, $2, … where there may be any."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.random = self.rng.random
        self.parameters = None

    def pick(self, choices):
        return choices[int(self.random() * len(choices))]

    def draw(self, kind, depth=None):
        """A text of a kind; mostly not deep, so that a statement costs little."""
        depth = self.pick((1, 1, 1, 2, 2, 2, 3, 4)) if depth is None else depth
        out = []
        self._draw(kind, depth, out)
        return "".join(out)

    def _draw(self, kind, depth, out):
        if kind in WRONG and self.random() < NOISE:
            kind = self.pick(WRONG)
        if self.parameters is not None and kind in PARAMETERS and self.random() < 0.3:
            self.parameters.append(kind)
            out.append(f"${len(self.parameters)}")
            return
        found = self.pick(LEAVES[kind] if depth <= 0 else ALL[kind])
        if isinstance(found, str):
            out.append(found)
            return
        is_kind = False
        for part in found:
            if is_kind:
                self._draw(part, depth - 1, out)
            else:
                out.append(part)
            is_kind = not is_kind
