"""Checks that the documents agree with each other and with the code.

Links and anchors lead somewhere; make targets, paths, crates, commands and flags exist; lists (settings,
ports, options, table properties, `system` tables, HTTP paths, metrics, limits) are those that the code
declares. Declarations are found by their text, not by their file, so that code can move. Prints each
offence, exits with 1 if there is any.

Not here: the text of docs/configuration.md (a test of crate stoa), examples that are run (clients/).
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").glob("*.md")) + sorted(ROOT.glob("clients/*/README.md"))
PAGES += sorted(ROOT.glob("bench/*/README.md"))

# Properties of tables that only other engines read; Stoa judges their values.
FOR_OTHER_ENGINES = {
    "commit.retry.max-wait-ms",
    "commit.retry.min-wait-ms",
    "commit.retry.total-timeout-ms",
    "write.object-storage.enabled",
}

# Flags of other programs that the pages name by themselves.
FLAGS_OF_OTHERS = {"add-opens", "cacert", "cert", "hiveconf", "key", "packages"}

# What the table of limits in docs/sql.md says, and the constants that it says it of.
LIMITS = {
    "the text of a request": ["BYTES_MAX", "TOKENS_MAX"],
    "terms of one chain": ["LINKS_MAX"],
    "other operators": ["OPERATORS_MAX"],
    "nested expressions": ["DEPTH_MAX"],
    "`SELECT`s in one statement": ["QUERIES_MAX"],
    "joined tables": ["JOINS_MAX"],
    "dimensions of an array": ["SUBSCRIPTS_MAX"],
}


@functools.cache
def text(path):
    return path.read_text(encoding="utf-8")


@functools.cache
def code():
    """The sources of all crates, without their tests."""
    return {path: text(path) for path in sorted(ROOT.glob("crates/*/src/**/*.rs")) if path.name != "tests.rs"}


def declared(marker, among=""):
    """The one source, of those whose path contains `among`, that holds `marker`."""
    found = [source for path, source in code().items() if marker in source and among in str(path)]
    if len(found) != 1:
        raise SystemExit(f"check_docs.py: {len(found)} sources hold {marker!r}, not one")
    return found[0]


def page(name):
    return text(ROOT / name)


def block(source, start, end):
    begin = source.index(start)
    return source[begin : source.index(end, begin)]


def without_code(markdown):
    """A page without its fenced and indented blocks."""
    markdown = re.sub(r"^```.*?^```$", "", markdown, flags=re.M | re.S)
    return re.sub(r"(?<=\n\n)(?: {4}.*\n)+", "", markdown)


def section(markdown, heading):
    return re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", markdown, re.M | re.S)[1]


def rows(markdown):
    """The cells of a section's tables, without their heads."""
    lines = [line for line in markdown.splitlines() if line.startswith("|") and not line.startswith("|---")]
    heads = [a for a, b in zip(markdown.splitlines(), markdown.splitlines()[1:]) if b.startswith("|---")]
    split = re.compile(r"(?<!\\)\|")
    return [[cell.strip() for cell in split.split(line)[1:-1]] for line in lines if line not in heads]


def quoted(markdown):
    return re.findall(r"`([^`\n]+)`", markdown)


def anchors(markdown):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", without_code(markdown), re.M):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        number = 1
        unique = slug
        while unique in found:
            unique = f"{slug}-{number}"
            number += 1
        found.add(unique)
    return found


def differ(what, said, real):
    """Complaints where two lists are not the same."""
    for name in sorted(set(said) - set(real)):
        yield f"{what}: {name} is in the document and not in the code"
    for name in sorted(set(real) - set(said)):
        yield f"{what}: {name} is in the code and not in the document"


def links():
    for path in PAGES:
        prose = re.sub(r"`[^`\n]*`", "", without_code(text(path)))
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            to = (path.parent / file).resolve() if file else path
            if not to.exists():
                yield f"{path.relative_to(ROOT)}: {target} does not exist"
            elif anchor and anchor not in anchors(text(to)):
                yield f"{path.relative_to(ROOT)}: {target}: no such heading"
    for path in sorted((ROOT / "docs").glob("*.md")):
        if f"(docs/{path.name})" not in page("README.md"):
            yield f"README.md does not link to docs/{path.name}"


def names():
    """Make targets, paths and crates that the pages name."""
    targets = set(re.findall(r"^([a-z-]+):.*## ", page("Makefile"), re.M))
    crates = {path.name for path in (ROOT / "crates").iterdir()}
    top = "scripts|clients|crates|docs|bench|fuzz|console|tests"
    for path in PAGES:
        here = path.relative_to(ROOT)
        shell = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text(path), re.M | re.S))
        for target in re.findall(r"`make ([a-z-]+)", text(path)) + re.findall(r"^make ([a-z-]+)", shell, re.M):
            if target not in targets:
                yield f"{here}: make {target} does not exist"
        for name in quoted(text(path)):
            word = name.split()[0]
            if re.fullmatch(rf"\.?/?(?:{top}|\.ci)/[\w./-]+", word) and "NAME" not in word:
                places = [ROOT, path.parent, *(ROOT / "crates").iterdir()]
                if not any((place / word).exists() for place in places):
                    yield f"{here}: {word} does not exist"
            if re.fullmatch(r"stoa-[a-z-]+", name) and name not in crates:
                yield f"{here}: crate {name} does not exist"
    said = set(re.findall(r"`make ([a-z-]+)`", page("CONTRIBUTING.md")))
    yield from differ("CONTRIBUTING.md, targets", said, targets - {"help"})
    suite = next(line for line in page("CONTRIBUTING.md").splitlines() if "one client suite" in line)
    suites = {path.parent.name for path in ROOT.glob("clients/*/run.sh")} | {"rust"}
    yield from differ("CONTRIBUTING.md, suites", set(re.findall(r"`(?:scripts/test.sh )?([a-z0-9]+)`", suite)), suites)
    fuzz = next(line for line in page("CONTRIBUTING.md").splitlines() if "| fuzz |" in line)
    fuzzed = re.search(r'^targets="(.*)"$', page("scripts/fuzz.sh"), re.M)[1].split()
    said = re.findall(r"`(?:scripts/fuzz.sh )?([a-z_]+)(?: 600)?`", fuzz)
    yield from differ("CONTRIBUTING.md, fuzz targets", said, fuzzed)


def layers():
    """Each crate is in the table of layers, which `layers.py` reads, and has a section."""
    architecture = page("ARCHITECTURE.md")
    said = {}
    for layer, crates, *_ in rows(section(architecture, "Layers")):
        said |= dict.fromkeys(quoted(crates), layer)
    crates = {path.name for path in (ROOT / "crates").iterdir()}
    yield from differ("ARCHITECTURE.md, layers", said, crates)
    described = re.findall(r"^### (stoa[a-z0-9-]*)$", architecture, re.M)
    yield from differ("ARCHITECTURE.md, sections", described, crates)


def settings():
    """Name to default of every setting."""
    body = declared("settings! {\n", "crates/stoa/src")
    return dict(re.findall(r'^    (\w+): .+ = "(.*)" for ', body, re.M))


def configuration():
    real = settings()
    headings = re.findall(r"^## `(\w+)`$", page("docs/configuration.md"), re.M)
    yield from differ("docs/configuration.md", headings, real)
    for path in PAGES:
        here = path.relative_to(ROOT)
        # Those of a session are compared with their declarations by a Rust test.
        tables = "" if path.name == "settings.md" else text(path)
        for table in re.findall(r"^\| setting \|.*\n(?:\|.*\n)+", tables, re.M):
            for cells in rows(table):
                for name in quoted(cells[0]):
                    if name.split(" ")[0] not in real:
                        yield f"{here}: setting {name} does not exist"
        ports = {real[name] for name in ("http_port", "pg_port", "flight_port")}
        for port in re.findall(r"(?:127\.0\.0\.1:|-p |port=|port )(\d{4,5})\b", text(path)):
            if port not in ports | {"9000", "9001", "10000"}:
                yield f"{here}: port {port} is none of {', '.join(sorted(ports))}"


def flags():
    """Subcommands and flags of `stoa …` in the pages."""
    enum = block(declared("enum Command {", "crates/stoa/src"), "enum Command {", "\n}")
    commands = {name.lower() for name in re.findall(r"^    ([A-Z]\w+)\(", enum, re.M)}
    known = {name.replace("_", "-") for name in [*settings(), *load_options()]} | {"help", "version"}
    for path, source in code().items():
        if "crates/stoa/src" not in str(path):
            continue
        for argument in source.split("#[arg(")[1:]:
            attribute, _, field = argument.partition(")]")
            known.add(re.match(r"\s*(?:pub )?(\w*)", field)[1].replace("_", "-"))
            known |= set(re.findall(r'(?:long|alias) = "([\w-]+)"', attribute))
    for path in PAGES:
        here = path.relative_to(ROOT)
        shell = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text(path), re.M | re.S)).replace("\\\n", " ")
        lines = [line for line in shell.splitlines() if line.startswith("stoa ")]
        lines += [name for name in quoted(text(path)) if name.startswith("stoa ")]
        lines += [f"stoa … {name}" for name in quoted(text(path)) if re.match(r"--[a-z]", name)]
        for line in lines:
            command = line.split()[1]
            if command.islower() and command not in commands:
                yield f"{here}: stoa {command} does not exist"
            for flag in re.findall(r"(?<=\s)--([a-z][\w-]*)", re.sub(r"'[^']*'|\"[^\"]*\"| -- .*", "", line)):
                if flag not in known | FLAGS_OF_OTHERS:
                    yield f"{here}: `{line.strip()}`: --{flag} does not exist"


def load_options():
    """Name to default of the options of `stoa load` and COPY."""
    table = block(declared("const SETTINGS: &[(", "stoa-load"), "const SETTINGS: &[(", "\n];")
    word = r'"((?:[^"\\]|\\.)*)"'
    found = re.findall(rf"\(\s*{word},\s*{word},\s*{word},\s*{word},\s*\|o, v\|", table)
    return {name: default.replace('\\"', '"') for name, default, *_ in found}


def sql_page():
    sql = page("docs/sql.md")
    said = {f"{quoted(name)[0]} = {default.strip('`')}" for name, default, _ in rows(section(sql, "Rows"))}
    yield from differ("docs/sql.md, options of COPY", said, {f"{a} = {b}" for a, b in load_options().items()})

    said = {name for cells in rows(section(sql, "Table properties")) for name in quoted(cells[0])}
    yield from differ("docs/sql.md, table properties", said, properties())

    system = declared('const SYSTEM: &str = "system"')
    said = {name for cells in rows(section(sql, "Watching and stopping")) for name in quoted(cells[0])}
    real = {f"system.{name.lower()}" for name in re.findall(r"SystemTable::\w+\(&stoa_figures::(\w+)", system)}
    yield from differ("docs/sql.md, system tables", said, real)

    limits = {cells[0]: cells[1].replace(",", "") for cells in rows(section(sql, "Limits of a statement"))}
    for what, constants in LIMITS.items():
        cell = next((value for name, value in limits.items() if name.startswith(what)), "")
        for constant in constants:
            value = limit(constant)
            shown = f"{value >> 20} MiB" if constant == "BYTES_MAX" else str(value)
            if not re.search(rf"\b{shown}\b", cell):
                yield f"docs/sql.md, limits: {what}: {cell or 'missing'}, and {constant} is {shown}"


def limit(constant):
    """A constant of the part that measures statements."""
    sources = [declared("const OPERATORS_MAX"), declared("fn flatten(statement: &mut EngineStatement)")]
    found = next(m[1] for source in sources if (m := re.search(rf"const {constant}: \w+ = (.*);", source)))
    left, _, right = found.replace("_", "").partition(" << ")
    return int(left) << int(right or 0)


def properties():
    """The table properties that Stoa reads."""
    table = declared("const RULES: &[(&str, Rule)]")
    rules = set(re.findall(r'^    \("([\w.-]+)", ', block(table, "const RULES", "\n];"), re.M))
    own = set(re.findall(r'"(stoa\.[\w.-]+)"', block(table, "pub const STOA_PROPERTIES", "\n];")))
    retention = re.search(r'const RETENTION: &str = "(.*)"', declared("const RETENTION: &str"))[1]
    fresh = re.findall(r'^pub const \w+: &str = "(stoa\.[\w.-]+)"', declared("pub const FLUSH_ROWS"), re.M)
    written = declared('"write.orc.compression-codec"', "stoa-table")
    files = re.findall(r'"((?:write|stoa)\.[a-z.-]+)"', written)
    return (rules | own | {retention, *fresh, *files}) - FOR_OTHER_ENGINES


def http():
    served = re.findall(r'\.route\("(/[^"]*)"', declared('.route("/health"'))
    yield from differ("docs/openapi.yaml", re.findall(r"^  (/\S*):$", page("docs/openapi.yaml"), re.M), served)


def words():
    """Metrics and functions that the pages name."""
    metrics = set(re.findall(r'"(stoa_\w+)"', "".join(s for p, s in code().items() if "stoa-http" in str(p))))
    families = "|".join({metric.split("_")[1] for metric in metrics})
    sources = "\n".join(code().values())
    for path in PAGES:
        here = path.relative_to(ROOT)
        for name in re.findall(rf"\bstoa_(?:{families})_\w*", text(path)):
            if not any(metric.startswith(name) if name.endswith("_") else metric == name for metric in metrics):
                yield f"{here}: metric {name} does not exist"
        for name in re.findall(r"`((?:has|pg_has)_\w+)`", text(path)):
            if f'"{name}"' not in sources:
                yield f"{here}: function {name} does not exist"


CHECKS = [links, names, layers, configuration, flags, sql_page, http, words]
found = [complaint for check in CHECKS for complaint in check()]
print("\n".join(found) or "the documents agree with the code")
sys.exit(bool(found))
