"""Checks that crates depend downwards only and do not know what they must not know.

The rule is ARCHITECTURE.md's; this is the copy of it that a machine can check. Only normal
dependencies count: tests may use anything. Prints each offence, exits with 1 if there is any.
"""

import json
import subprocess
import sys

# A crate may depend on crates of lower layers, never on one of its own layer or above.
LAYER = {
    "stoa-error": 0,
    "stoa-env": 0,
    "stoa-orc": 1,
    "stoa-rangeio": 1,
    "stoa-listen": 1,
    "stoa-store": 2,
    "stoa-commitlog": 2,
    "stoa-load": 2,
    "stoa-orc-tools": 2,
    "stoa-hql": 2,
    "stoa-access": 2,
    "stoa-tls": 2,
    "stoa-catalog": 3,
    "stoa-table": 4,
    "stoa-ingest": 5,
    "stoa-cells": 6,
    "stoa-report": 6,
    "stoa-query": 7,
    "stoa-pgwire": 8,
    "stoa-http": 8,
    "stoa-flight": 8,
    "stoa-bench": 8,
    "stoa": 9,
}

# Crates of others that mean knowing too much, by the first letters of their names.
BARRED = {
    "stoa-error": [""],
    "stoa-orc": ["tokio", "object_store", "iceberg", "datafusion", "sqlx"],
    "stoa-rangeio": ["iceberg", "datafusion", "arrow", "sqlx"],
    "stoa-listen": ["axum", "pgwire", "tonic", "datafusion"],
    "stoa-store": ["iceberg", "datafusion", "arrow", "sqlx"],
    "stoa-commitlog": ["iceberg", "datafusion", "arrow", "sqlx"],
    "stoa-load": ["tokio", "object_store", "iceberg", "datafusion", "sqlx"],
    "stoa-orc-tools": ["tokio", "object_store", "iceberg", "datafusion", "sqlx"],
    "stoa-access": ["tokio", "object_store", "iceberg", "datafusion", "arrow", "sqlx", "axum", "pgwire"],
    "stoa-tls": ["object_store", "iceberg", "datafusion", "arrow", "sqlx", "axum", "pgwire"],
    "stoa-catalog": ["datafusion", "arrow", "iceberg"],
    "stoa-ingest": ["datafusion", "sqlparser", "sqlx", "axum", "pgwire"],
    "stoa-cells": ["datafusion", "sqlparser", "sqlx", "axum", "pgwire", "iceberg"],
    "stoa-hql": ["datafusion", "sqlparser", "sqlx", "axum", "pgwire", "iceberg"],
    "stoa-table": ["datafusion", "sqlparser", "sqlx", "axum", "pgwire"],
    "stoa-report": ["datafusion", "sqlparser", "sqlx", "axum", "pgwire", "iceberg"],
    "stoa-query": ["axum", "pgwire", "sqlx"],
    "stoa-pgwire": ["axum", "iceberg", "object_store", "sqlx"],
    "stoa-http": ["pgwire", "iceberg", "object_store", "sqlx"],
    "stoa-flight": ["axum", "pgwire", "iceberg", "object_store", "sqlx"],
    "stoa-bench": ["datafusion", "iceberg", "sqlx"],
}


def offences():
    metadata = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1"], check=True, capture_output=True, text=True
    )
    for package in json.loads(metadata.stdout)["packages"]:
        crate = package["name"]
        if crate == "stoa-testkit":
            continue
        if crate not in LAYER:
            yield f"{crate} has no layer: give it one here and a section in ARCHITECTURE.md"
            continue
        for dependency in package["dependencies"]:
            if dependency["kind"] is not None:
                continue
            name = dependency["name"]
            if name == "stoa-testkit":
                yield f"{crate} uses stoa-testkit outside tests"
            elif name in LAYER:
                if LAYER[name] >= LAYER[crate]:
                    yield f"{crate} (layer {LAYER[crate]}) must not depend on {name} (layer {LAYER[name]})"
            elif any(name.startswith(barred) for barred in BARRED.get(crate, [])):
                yield f"{crate} must not know {name}"


found = list(offences())
print("\n".join(found) or "every crate depends downwards only")
sys.exit(bool(found))
