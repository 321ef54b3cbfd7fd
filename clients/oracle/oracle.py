"""Compares Stoa with PostgreSQL, statement by statement; see README.md.

Everything is drawn from a seed, which is printed: the same seed draws the same statements. What is
answered differently is made small and printed with both answers.
"""

import argparse
import collections
import os
import pathlib
import random
import sys
import time

import files
import groupings
import histories
import logictest
import known
import manual
import pairs
import parameters
import shapes
import tables
import within
from compare import compare
from queries import Queries
from sides import Refusal, Side
from tree import redrawn, reduced

HERE = pathlib.Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "sql.md"

# A debug build compares so many in about a minute.
EXPRESSIONS = 3000
# Of so many expressions, one is about larger tables.
LARGER_SHARE = 3
# Attempts to make one statement smaller, and statements that are made smaller.
ATTEMPTS = 250
REDUCED_MAX = 40
# Of so many drawn statements that agree, one is asked as a view, too.
VIEW_EVERY = 8
# Of the generated statements at most this part may be refused; else nothing much is compared.
REFUSED_MAX = 0.05


class Oracle:
    """Both servers, and what was found."""

    def __init__(self, postgres, stoa):
        self.postgres = postgres
        self.stoa = stoa
        self.counts = collections.Counter()
        self.expressions = collections.Counter()
        self.refused = collections.Counter()
        self.refused_example = {}
        self.excused = collections.Counter()
        self.findings = {}
        self.reductions = 0
        # Whether each statement is another daemon's.
        self.takes_turns = False

    def verdict(self, sql, ordered=False, values=None, convert=None):
        expected = self.postgres.ask(sql, values)
        actual = self.stoa.in_turn(sql, values) if self.takes_turns else self.stoa.ask(sql, values)
        return compare(convert(expected, actual) if convert else expected, actual, ordered)

    def check(self, sql, ordered=False, values=None, convert=None):
        """Compares a statement that cannot be made smaller; `convert` changes what PostgreSQL answers before."""
        verdict = self.verdict(sql, ordered, values, convert)
        if values is not None:
            sql = f"{sql}  -- {values}"
        self.note(verdict, sql)

    def note(self, verdict, sql):
        """Counts how a statement compared."""
        if verdict.word == "differ" and known.known(verdict, sql):
            self.excused[known.known(verdict, sql).docs] += 1
            self.counts["known"] += 1
            return
        self.counts[verdict.word] += 1
        if verdict.word == "refused":
            self.note_refused(verdict, sql)
        elif verdict.word == "differ":
            self.findings.setdefault((verdict.how, sql), (verdict, sql, sql))

    def check_drawn(self, statement, rng):
        """Compares a drawn statement as often as it has turns."""
        tree, word = statement.tree, "agree"
        for turn in range(statement.turns):
            if turn:
                tree = redrawn(tree, rng)
            verdict = self.verdict(str(tree), statement.ordered)
            if verdict.word == "differ":
                word = self.look_at(tree, verdict, statement)
                break
            if verdict.word == "refused":
                self.note_refused(verdict, str(tree))
                word = "refused"
                break
        if word == "agree" and rng.randrange(VIEW_EVERY) == 0:
            word = self.check_view(str(tree))
        self.counts[word] += 1
        self.expressions[word] += statement.expressions
        self.counts[f"form {statement.form} {word}"] += 1

    def check_view(self, sql):
        """Compares the view that a statement defines; its rows have no order there."""
        answer = self.postgres.ask(sql)
        if isinstance(answer, Refusal):
            return "agree"
        columns = len(answer.types)
        names = [f"c{number}" for number in range(columns)]
        create = f"CREATE VIEW as_view ({', '.join(names)}) AS {sql}"
        made = self.verdict(create)
        if made.word == "refused":
            self.note_refused(made, create)
        verdict, asked = made, create
        if made.word == "agree" and not isinstance(self.postgres.ask("SELECT 1 FROM as_view LIMIT 0"), Refusal):
            asked = f"SELECT {', '.join(names)} FROM as_view"
            verdict = self.verdict(asked)
            if verdict.word == "agree":
                asked = f"SELECT count(*), count({names[0]}) FROM as_view AS v WHERE v.{names[-1]} IS NOT NULL"
                verdict = self.verdict(asked)
        for side in (self.postgres, self.stoa):
            side.ask("DROP VIEW IF EXISTS as_view")
        self.counts[f"view {verdict.word}"] += 1
        if verdict.word == "differ":
            self.findings.setdefault((verdict.how, create), (verdict, f"{create};  {asked}", sql))
        return "differ" if verdict.word == "differ" else "agree"

    def look_at(self, tree, verdict, statement):
        """A difference: makes it small, and sees whether it is known."""
        sql = str(tree)
        if self.reductions >= REDUCED_MAX:
            self.findings.setdefault((verdict.how, ""), (verdict, sql, sql))
            return "differ"
        self.reductions += 1

        def still(candidate):
            found = self.verdict(str(candidate), statement.ordered)
            return found.word == "differ" and found.how == verdict.how

        small = str(reduced(tree, still, ATTEMPTS)) if still(tree) else sql
        found = self.verdict(small, statement.ordered)
        if found.word != "differ":
            # It was answered differently among others only, as one of many turns.
            found = verdict
        if entry := known.known(found, small):
            self.excused[entry.docs] += 1
            self.reductions -= 1
            return "known"
        self.findings.setdefault((found.how, small), (found, small, sql))
        return "differ"

    def note_refused(self, verdict, sql):
        key = verdict.detail[:110]
        self.refused[key] += 1
        self.refused_example.setdefault(key, sql)


def cases():
    """The statements of cases/*.sql, one per paragraph or line."""
    for file in sorted((HERE / "cases").glob("*.sql")):
        text = "\n".join(line for line in file.read_text().splitlines() if not line.startswith("--"))
        for statement in text.split(";\n"):
            if statement := statement.strip().rstrip(";"):
                yield file.stem, statement


def set_up(oracle):
    oracle.stoa.prepare_session("SET timezone = 'UTC'")
    oracle.postgres.prepare_session("SET timezone = 'UTC'", "SET statement_timeout = '20s'")
    make(oracle, [*tables.statements(), *pairs.setup()])


def make(oracle, statements):
    for statement in statements:
        oracle.stoa.must(statement)
    for statement in tables.for_postgres(statements):
        oracle.postgres.must(statement)


def known_examples(oracle):
    """Complaints about known differences that are not documented; says which are differences no more."""
    docs = " ".join(DOCS.read_text().split())
    for entry in known.KNOWN:
        if " ".join(entry.docs.split()) not in docs:
            yield f"docs/sql.md does not say: {entry.docs}"
        verdict = oracle.verdict(entry.example)
        if verdict.word != "differ" or not entry.matches(verdict, entry.example):
            print(f"    no longer differs ({verdict.word} {verdict.how} {verdict.detail}): {entry.example}")


def run_cases(oracle, only):
    for name, statement in cases():
        if only in ("", "cases", name):
            # The second and third time a statement comes from templates or from the short path.
            for _ in range(3):
                oracle.check(statement, " order by " in statement.lower().rsplit(")", 1)[-1])


def run_pairs(oracle, seed, only, expressions):
    if only in ("", "pairs"):
        for statement in pairs.statements(random.Random(seed), expressions / 50_000):
            oracle.check(statement)


def run_within(oracle, seed, only, expressions):
    """The fixed statements inside others; at the full size all of them, else about one of eight."""
    if only in ("", "within"):
        rng, part = random.Random(seed), min(1, max(0.02, expressions / 100_000))
        fixed = sorted({sql for _, sql in cases() if within.is_query(sql)})
        for sql in rng.sample(fixed, int(len(fixed) * min(1, part * 4))):
            for around in within.statements(oracle.postgres, sql, rng, part * 2):
                # What PostgreSQL refuses says nothing: the types may have no such operator.
                if not isinstance(oracle.postgres.ask(around), Refusal):
                    oracle.check(around)


def run_parameters(oracle, only):
    if only in ("", "parameters"):
        for statement, values in parameters.statements():
            oracle.check(statement, values=values)


def run_shapes(oracle, seed, only):
    """Reports of BI tools; complaints about those that did not take the short path."""
    if only not in ("", "shapes"):
        return []
    rng = random.Random(seed)
    for statement in shapes.statements(rng):
        oracle.stoa.must(statement)
        if not statement.startswith("FLUSH"):
            oracle.postgres.must(statement)
    complaints = [*shapes.run(oracle, rng), *shapes.run_prepared(oracle, rng), *shapes.run_unnamed(oracle, rng)]
    shapes.run_unusual(oracle)
    shapes.after_changes(oracle, rng)
    return complaints


def run_groupings(oracle, seed, only):
    """Groupings over files whose columns are kept; complaints if they were made elsewhere."""
    return list(groupings.run(oracle, seed)) if only in ("", "groupings") else []


def run_histories(oracle, seed, only, expressions):
    """Tables that change."""
    if only in ("", "histories"):
        histories.run(oracle, seed, expressions)


def run_larger(oracle, seed, expressions):
    """Statements about tables that scans have in several batches, and tell each other something about."""
    make(oracle, list(tables.larger()))
    oracle.takes_turns = True
    drawn = run_drawn(oracle, f"{seed}/larger", expressions - expressions // 2, "")
    # What the short path and kept answers would spare the planner.
    oracle.stoa.prepare_session("SET short_path = off", "SET result_reuse = off")
    return drawn + run_drawn(oracle, f"{seed}/planned", expressions // 2, "")


def run_drawn(oracle, seed, expressions, only):
    done, number = 0, 0
    while done < expressions:
        rng = random.Random(f"{seed}/{number}")
        number += 1
        statement = Queries(rng).draw()
        if only.startswith("form:") and statement.form != only[5:]:
            continue
        oracle.check_drawn(statement, rng)
        done += statement.expressions
    return number


def report(oracle, complaints):
    for (how, small), (verdict, sql, original) in sorted(oracle.findings.items()):
        print(f"\nFAIL {how}\n  {sql}\n  {verdict.detail}")
        if original != sql and os.environ.get("STOA_ORACLE_VERBOSE"):
            print(f"  found in: {original}")
    for complaint in complaints:
        print(f"\nFAIL {complaint}")
    if oracle.refused:
        print("\nrefused by Stoa, most often:")
        for key, count in oracle.refused.most_common(40 if os.environ.get("STOA_ORACLE_VERBOSE") else 8):
            print(f"  {count:5} {key}\n        {oracle.refused_example[key][:200]}")
    for docs, count in oracle.excused.most_common():
        print(f"  known {count:5} {docs}")


def run_files(oracle, paths):
    """Compares the statements of files, whose data are in the folder beside theirs."""
    for side in (oracle.postgres, oracle.stoa):
        side.prepare_session("SET timezone = 'America/Los_Angeles'", "SET datestyle = 'ISO, MDY'")
    oracle.postgres.prepare_session("SET statement_timeout = '60s'")
    run = files.Files(oracle, paths[0].parents[1])
    for path in paths:
        run.run(path)
    run.report()
    return 0


def run_logictests(oracle, paths):
    """Files of sqllogictest, also those in folders; `STOA_ORACLE_VERBOSE=1` shows all differences."""
    run = logictest.LogicTests(oracle)
    for path in paths:
        of_folder = (file for end in ("slt", "test") for file in path.rglob(f"*.{end}"))
        for file in sorted(of_folder) if path.is_dir() else [path]:
            run.run(file, str(file.relative_to(path)) if path.is_dir() else file.name)
    run.report(1000 if os.environ.get("STOA_ORACLE_VERBOSE") else 30)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--stoa", required=True, nargs="+", help="several for the daemons of a cluster")
    parser.add_argument("--seed", default=os.environ.get("STOA_ORACLE_SEED", "1"))
    size = os.environ.get("STOA_ORACLE_EXPRESSIONS", EXPRESSIONS)
    parser.add_argument("--expressions", type=int, default=int(size))
    parser.add_argument("--only", default="", help="cases, the name of a file of cases, pairs, within, parameters, shapes, groupings, histories, manual, drawn, form:NAME, larger")
    parser.add_argument("--files", nargs="*", type=pathlib.Path, help="files of statements to compare instead")
    parser.add_argument("--logictests", nargs="*", type=pathlib.Path, help="files or folders of sqllogictest to compare instead")
    options = parser.parse_args()
    oracle = Oracle(Side(options.postgres), Side(*options.stoa))
    if options.files:
        return run_files(oracle, options.files)
    if options.logictests:
        return run_logictests(oracle, options.logictests)
    set_up(oracle)
    started = time.monotonic()
    complaints = list(known_examples(oracle)) if not options.only else []
    run_cases(oracle, options.only)
    run_pairs(oracle, options.seed, options.only, options.expressions)
    run_within(oracle, options.seed, options.only, options.expressions)
    run_parameters(oracle, options.only)
    complaints += run_shapes(oracle, options.seed, options.only)
    # Plans that are spread say little about the scans of other daemons.
    kept = run_groupings(oracle, options.seed, options.only)
    complaints += kept if len(options.stoa) == 1 else []
    if options.only in ("", "manual"):
        page = manual.page(manual.run(oracle))
        complaints += manual.complaints(page, bool(os.environ.get("STOA_REWRITE")))
    run_histories(oracle, options.seed, options.only, options.expressions)
    fixed = oracle.counts.copy()
    drawn = 0
    if options.only in ("", "drawn") or options.only.startswith("form:"):
        drawn = run_drawn(oracle, options.seed, options.expressions, options.only)
    if options.only in ("", "larger"):
        drawn += run_larger(oracle, options.seed, options.expressions // LARGER_SHARE)
    report(oracle, complaints)
    took = time.monotonic() - started
    print(f"\nfixed statements: {dict(fixed)}")
    print(f"seed {options.seed}: {drawn} statements drawn, {sum(oracle.expressions.values())} expressions: "
          f"{dict(oracle.expressions)} in {took:.0f} s")  # fmt: skip
    failed = oracle.counts["differ"] + len(complaints)
    compared = sum(oracle.expressions.values())
    if compared and oracle.expressions["refused"] > REFUSED_MAX * compared and options.only == "":
        print(f"FAIL more than {REFUSED_MAX:.0%} of what was drawn is refused")
        failed += 1
    passed = oracle.counts["agree"] + oracle.counts["known"] + oracle.counts["refused"]
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
