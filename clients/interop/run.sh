#!/usr/bin/env bash
# Reads and writes one warehouse with Stoa, Spark, PyIceberg and DuckDB, and compares.
# Started by scripts/test.sh (`make interop`), which gives it a server; see CONTRIBUTING.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

"$here/setup.sh" || exit $?
# Spark and Python agree on UTC, so that timestamps can be compared as they are.
export TZ=UTC PYTHONDONTWRITEBYTECODE=1
export STOA_INTEROP_JARS="$STOA_TOOLS/interop/jars"
cd "$here"
"$STOA_TOOLS/interop/venv/bin/python" -m pytest -p no:cacheprovider -ra --durations=5 "$@" .
