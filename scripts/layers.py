"""Checks that crates and modules depend one way only and do not know what they must not know.

The rules are the tables in ARCHITECTURE.md, sections Layers and Rooms: layers, what a crate must not know, and the
order of a crate's rooms. Only normal dependencies count: tests may use anything. Prints each offence, exits with 1
if there is any.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

# What the words in the column "must not know" stand for: crates, by the first letters of their names.
WORDS = {
    "anything else": [""],
    "Arrow": ["arrow"],
    "tokio": ["tokio"],
    "formats": ["arrow", "parquet", "stoa-orc"],
    "stores": ["object_store", "stoa-store"],
    "databases": ["sqlx", "rusqlite"],
    "tables": ["iceberg", "stoa-table"],
    "SQL": ["datafusion", "sqlparser", "stoa-sql"],
    "the engine": ["datafusion", "tokio", "stoa-query"],
    "protocols": ["axum", "pgwire", "tonic", "stoa-pgwire", "stoa-http", "stoa-flight", "stoa-hs2", "stoa-thrift"],
    "other protocols": [],
}

# What a crate may know all the same.
EXCEPTIONS = {
    # The syntax tree of statements.
    "stoa-sql": ["datafusion-sql", "datafusion-common"],
}

# The protocols that each protocol's crate is not.
OTHER_PROTOCOLS = {
    "stoa-pgwire": ["axum", "tonic"],
    "stoa-http": ["pgwire", "tonic"],
    "stoa-flight": ["axum", "pgwire"],
    "stoa-hs2": ["axum", "pgwire", "tonic"],
}

# Circles of modules that are one concept, with the reason.
CIRCLES = {
    "stoa-listen": {
        ("door", "guarded", "guest"): "a door counts its guests, and a guest tells its door when it waits or leaves",
    },
    "stoa-table": {
        ("data", "deletes", "files", "scan"): "a data file has delete files, which are found and read as data files are",
    },
}


def table_rows(text, heading):
    """The cells of the first table behind a heading."""
    rows = []
    for line in text[text.index(heading) :].splitlines()[1:]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


def map_of_crates(text):
    """Layer and forbidden first letters of each crate, as ARCHITECTURE.md has them."""
    layers, barred = {}, {}
    for layer, crates, _, unknown in table_rows(text, "## Layers"):
        for crate in re.findall(r"`([\w-]+)`", crates):
            layers[crate] = None if layer == "test" else int(layer)
            words = [word.strip() for word in unknown.split(",") if word.strip()]
            barred[crate] = [prefix for word in words for prefix in WORDS[word]]
            if "other protocols" in words:
                barred[crate] += OTHER_PROTOCOLS[crate]
    return layers, barred


def crate_offences(packages, layers, barred):
    for package in packages:
        crate = package["name"]
        if crate not in layers:
            yield f"{crate} has no layer: give it one in ARCHITECTURE.md, and a section there"
            continue
        if layers[crate] is None:
            continue
        for dependency in package["dependencies"]:
            name = dependency["name"]
            if dependency["kind"] is not None:
                continue
            if name in layers and layers[name] is None:
                yield f"{crate} uses {name} outside tests"
            elif name in layers and layers[name] >= layers[crate]:
                yield f"{crate} (layer {layers[crate]}) must not depend on {name} (layer {layers[name]})"
            elif name in EXCEPTIONS.get(crate, []):
                continue
            elif any(name.startswith(prefix) for prefix in barred[crate]):
                yield f"{crate} must not know {name}"
    missing = set(layers) - {package["name"] for package in packages}
    yield from (f"ARCHITECTURE.md has a crate {crate} that is not there" for crate in sorted(missing))


def without_tests(source):
    """A source text without comments, and without the test modules at its end."""
    return re.sub(r"//[^\n]*", "", re.split(r"#\[cfg\(test\)\]\s*mod", source)[0])


def names_in(group):
    """The first names of the paths in `{…}`."""
    return re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", group))


def uses_of(source, is_top):
    """Names behind `crate::`, and behind `super::` in a file of the top level.

    A name that `lib.rs` re-exports tells no module, and is not counted.
    """
    found = set(re.findall(r"\bcrate::(\w+)", source))
    paths = re.findall(r"\bcrate::\{((?:[^{}]|\{[^{}]*\})*)\}", source)
    found.update(name for path in paths for name in names_in(path))
    if is_top:
        found.update(re.findall(r"\bsuper::(\w+)", source))
        paths = re.findall(r"\bsuper::\{((?:[^{}]|\{[^{}]*\})*)\}", source)
        found.update(name for path in paths for name in names_in(path))
    return found


def modules_of(crate):
    """The top modules of a crate, each with the others that it uses."""
    root = Path("crates") / crate / "src"
    sources = {}
    for path in sorted(root.rglob("*.rs")):
        top = path.relative_to(root).parts[0].removesuffix(".rs")
        if top in ("lib", "main", "bin") or path.name == "tests.rs":
            continue
        text = without_tests(path.read_text())
        sources.setdefault(top, set()).update(uses_of(text, path.parent == root))
    return {module: (used & sources.keys()) - {module} for module, used in sources.items()}


def circles(modules):
    """Sets of modules that use each other, directly or through others."""

    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            for used in modules[waiting.pop()] - seen:
                seen.add(used)
                waiting.append(used)
        return seen

    reach = {module: reached(module) for module in modules}
    groups = {frozenset(m for m in reach[module] if module in reach[m]) for module in modules if module in reach[module]}
    return sorted(map(sorted, groups))


def module_offences(packages, rooms):
    for crate in sorted(package["name"] for package in packages):
        modules = modules_of(crate)
        for circle in circles(modules):
            if CIRCLES.get(crate, {}).get(tuple(circle)) is None:
                yield f"modules of {crate} use each other in a circle: {', '.join(circle)}"
        order = rooms.get(crate, [])
        for module, used in sorted(modules.items()):
            if module not in order:
                if order and used:
                    yield f"{crate}::{module} stands in no room of ARCHITECTURE.md"
                continue
            for name in sorted(used & set(order)):
                if order.index(name) > order.index(module):
                    yield f"{crate}::{module} must not use {crate}::{name}, which stands above it"
        yield from (f"ARCHITECTURE.md has a room {crate}::{room} that is not there" for room in order if room not in modules)


def offences():
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["packages"]
    text = Path("ARCHITECTURE.md").read_text()
    layers, barred = map_of_crates(text)
    rooms = {"stoa-query": [row[0].strip("`") for row in table_rows(text, "### Rooms")]}
    yield from crate_offences(packages, layers, barred)
    yield from module_offences(packages, rooms)


found = list(offences())
print("\n".join(found) or "crates and modules depend one way only")
sys.exit(bool(found))
