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
        how=r"type (integer|text)\[\] json",
        statement=r"'\{\{|array_fill\(.*,.*,",
        docs="Arrays of arrays and of rows are sent as `json`",
        example="SELECT '{{1,2},{3,4}}'::int[]",
    ),
    Known(
        how=r"value double of large ones",
        statement=r"\b(sum|avg|stddev\w*|variance|var_\w+)\(",
        docs="Doubles are summed in any order",
        example="SELECT sum(v) FROM (VALUES (1e15::double precision), (0.3), (-1e15), (0.3), (0.1)) AS x(v)",
    ),
    Known(
        how=r"value double",
        statement=r"\b(sum|avg)\(.*\b[dlv] \* ([dl]|1e9)\b",
        docs="Doubles are summed in any order",
        example="SELECT sum(v * 1e9) FROM (VALUES (1e15::double precision), (0.3), (-1e15), (0.3), (0.1)) AS x(v)",
    ),
    Known(
        how=r"error 22023",
        statement=r"extract\(timezone",
        docs="Some features are refused with a code other than `0A000`",
        example="SELECT extract(timezone FROM TIMESTAMPTZ '2001-02-16 20:38:40+00')",
    ),
    Known(
        how=r"type numeric double",
        statement=r"\^|\blog\(|stddev|variance|var_pop|var_samp",
        docs="`sqrt`, `power`, `^`, `exp` and `log` of a `numeric` are `double precision`",
        example="SELECT 2.5 ^ 2",
    ),
    Known(
        how=r"type real double",
        statement=r"sum\(r\)",
        docs="`sum` of `real` is `double precision`",
        example="SELECT sum(r) FROM facts",
    ),
    Known(
        how=r"value boolean",
        statement=r"txid_current|pg_get_viewdef",
        docs="`txid_current` is 0",
        example="SELECT txid_current() > 0",
    ),
    Known(
        how=r"value text",
        statement=r"to_regtype\(",
        docs="`to_regtype(…)::text` is a number",
        example="SELECT to_regtype('int4')::text",
    ),
    Known(
        how=r"error 42703",
        statement=r"\buser\b",
        docs="`user` without quotes is the name of a column",
        example="SELECT user IS NOT NULL",
    ),
    Known(
        how=r"type numeric double",
        statement=r"[0-9]e[+-]?[0-9]",
        docs="Numbers with an exponent are doubles",
        example="SELECT 1e2",
    ),
    Known(
        how=r"value text",
        statement=r"pg_typeof\(.*varchar|varchar.*pg_typeof\(",
        docs="types that Stoa stores alike have one name (`varchar` is `text`)",
        example="SELECT pg_typeof(v)::text FROM (VALUES (CAST('a' AS varchar(3)))) AS x(v)",
    ),
    Known(
        how=r"error 22(P02|007)",
        statement=r"'(Infinity|NaN)'",
        docs="`'Infinity'` and `'NaN'` are values of floating-point types only",
        example="SELECT id FROM pairs WHERE p = 'NaN'",
    ),
    Known(
        how=r"answers 42883",
        statement=r"FROM pairs",
        docs="Numbers can be compared with dates, and other types that PostgreSQL does not compare",
        example="SELECT id FROM pairs WHERE day = 1",
    ),
    Known(
        how=r"answers (42601|42P10)",
        statement=r"ORDER BY",
        docs="A constant in ORDER BY that is not a position has no effect",
        example="SELECT id FROM facts ORDER BY 'a'",
    ),
    Known(
        how=r"answers 42702",
        statement=r"(?:ELSE |CAST\()(?:\w+\.)?(\w+) (?:END|AS)\b.* FROM .*ORDER BY .*\b\1\b",
        docs="A name in ORDER BY that several columns of the result have is not ambiguous",
        example="SELECT CAST(id AS bigint), id FROM facts ORDER BY id",
    ),
    Known(
        how=r"error (22003|22P02)",
        statement=r"CAST\(.* IN \(SELECT \w+ FROM nothing",
        docs="`IN` and `NOT IN` of a query without rows compute their operand",
        example="SELECT (CAST(d AS int) NOT IN (SELECT i FROM nothing)) FROM others",
    ),
    Known(
        how=r"error (22003|22012)",
        statement=r"(CAST\(|[%/]).* IN \(SELECT [\w.]+ FROM [\w ]+ WHERE \(?(NULL|false)",
        docs="`IN` and `NOT IN` of a query without rows compute their operand",
        example="SELECT ((7 % i) NOT IN (SELECT x0.i FROM few x0 WHERE NULL::boolean)) FROM others",
    ),
    Known(
        how=r"error (22003|22P02|22012)",
        statement=r"\w\(.*(CAST\(.* AS int\)|[%/] ).*(NULL::|, NULL\))|\w\(.*NULL::.*(CAST\(.* AS int\)|[%/] )",
        docs="A function computes its operands beside a constant NULL",
        example="SELECT power(CAST(l + 9000000000 AS int), NULL) FROM facts",
    ),
    Known(
        how=r"error 22\w+",
        statement=r"CASE CAST\(.* AS [\w ]+(\(\d+(,\d+)?\))?\) WHEN NULL ",
        docs="A function computes its operands beside a constant NULL",
        example="SELECT CASE CAST(l + 9000000000 AS int) WHEN NULL THEN 1 ELSE 2 END FROM facts",
    ),
    Known(
        how=r"error (22003|22012|22P02)",
        statement=r"\bIN \((?!SELECT).*(CAST\(|/)|BETWEEN .* AND CAST\(",
        docs="All items of a list are computed",
        example="SELECT (t.d NOT IN (t.d, (t.d / t.d))) FROM others t",
    ),
    Known(
        how=r"(answers|error) 22\w+",
        statement=r"\(\(.*, .*\) (=|<>|<|>|<=|>=) \(.*, .*\)\)",
        docs="rows are compared until it is known how they compare",
        example="SELECT ((1, 'a') = (CAST(l + 9000000000 AS int), 'b')) FROM facts",
    ),
    Known(
        how=r"value integer",
        statement=r"(position|strpos|length)\(.*CAST\(.* AS text\)",
        docs="A `numeric` column has one scale",
        example="SELECT position(CAST(coalesce(j, 1.5) AS text) IN u) FROM facts",
    ),
    Known(
        how=r"value numeric",
        statement=r"avg\(.* / ",
        docs="A `numeric` column has one scale",
        example="SELECT avg(q / p) FROM (VALUES (1::numeric(18,6), 3::numeric(10,2)), (2, 3), (7, 1)) v(q, p)",
    ),
    Known(
        how=r"answers 22\w+",
        statement=r"\* 0(\.0+)?\b|\b0(\.0+)? \*",
        docs="A product with a constant 0 is 0",
        example="SELECT (CAST((7.0 - 3000000000) AS int) * 0.0)",
    ),
    Known(
        how=r"answers 22003",
        statement=r"pg_typeof\(.*CAST\(",
        docs="`pg_typeof` does not compute its operand",
        example="SELECT pg_typeof(CAST(p - 3000000000 AS numeric(12,3)))::text FROM facts LIMIT 1",
    ),
    Known(
        how=r"value boolean",
        statement=r"\|\| .* LIKE ",
        docs="A `numeric` column has one scale",
        example="SELECT (s || (p / nullif(p, 0)) NOT LIKE 'ab_') FROM facts",
    ),
    Known(
        how=r"value text zeros",
        statement=r"AS text\)|::text|\|\||concat",
        docs="A `numeric` column has one scale",
        example="SELECT CAST(p / 1.5 AS text) FROM facts",
    ),
    Known(
        how=r"value text",
        statement=r"\b(md5|lpad|rpad|concat|concat_ws|reverse|left|right|substring|overlay|translate|repeat|replace|split_part)"
        r"\(.*\b(CASE|coalesce|greatest|least|nullif)\b.*(\d\.\d|\bp\b|\bq\b)"
        r"|\|\| .*\|\| .*VALUES.*\d\.\d|\b(concat|overlay|lpad|rpad|md5|right|substring|reverse)\(CAST\(\w+ AS text\).*VALUES.*\d\.\d",
        docs="A `numeric` column has one scale",
        example="SELECT md5(CAST(CASE WHEN true THEN 1.5 ELSE 0.001 END AS text))",
    ),
    Known(
        how=r"value text( zeros)?",
        statement=r"CAST\(CASE .*\b[pq]\b.* END AS text\) \|\||\|\| \(?CASE .*\b[pq]\b.* END|\bCASE .*\b[pq]\b.* END\)? \|\|",
        docs="A `numeric` column has one scale",
        example="SELECT s || CASE WHEN true THEN 0 ELSE p END FROM facts",
    ),
    Known(
        how=r"answers 22012",
        statement=r"CASE .*(THEN|ELSE) \(?-?\d+(\.\d+)? (%|/) ",
        docs="A constant branch of CASE that fails is computed when it is chosen",
        example="SELECT CASE WHEN i > 1000000 THEN 1 / 0 END FROM facts",
    ),
    Known(
        how=r"value text( zeros)?",
        statement=r"CAST\((coalesce\(.*\bq\b.*|\w+) AS text\) \|\|",
        docs="A `numeric` column has one scale",
        example="SELECT CAST(coalesce(1, q) AS text) || s FROM facts",
    ),
    Known(
        how=r"value (integer|timestamp)",
        statement=r"position\(.*\|\| coalesce\(.*\b[pq]\b|length\(.*\|\| \(.* / |length\(.*\b(CASE|coalesce|greatest|least)\b.*(\d\.\d|\bp\b|\bq\b)",
        docs="A `numeric` column has one scale",
        example="SELECT length('a' || CASE WHEN true THEN 0.5 ELSE 12.345 END)",
    ),
    Known(
        how=r"answers 42804",
        statement=r"\b(first_value|last_value|nth_value|lag|lead)\('|WITHIN GROUP \(ORDER BY '[^']*'( DESC)?\)",
        docs="`first_value('a')` and similar functions treat a quoted literal as `text`",
        example="SELECT id, first_value('a') OVER (ORDER BY id) FROM facts",
    ),
]


def known(verdict, sql):
    """The entry that excuses a difference."""
    return next((entry for entry in KNOWN if entry.matches(verdict, sql)), None)
