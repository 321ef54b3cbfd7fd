#!/usr/bin/env bash
# Reports over HiveServer2: Hive's JDBC driver with 1, 8 and 32 clients and PyHive with one, beside the PostgreSQL
# protocol, on one server in one run. docs/performance.md has the figures.
#
#   STOA=BINARY bench/hive/run.sh [--rows N] [--clients 1,8,32] [--seconds S] [--warehouse DIR]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

"$here/../../clients/hive/setup.sh" || exit $?
stoa=${STOA:-$CARGO_TARGET_DIR/release/stoa}
[ -x "$stoa" ] || fail "build it first: make build; or set STOA to the binary"
exec "$STOA_TOOLS/hive/venv/bin/python" "$here/reports.py" --stoa "$stoa" \
  --driver "$STOA_TOOLS/hive/hive-jdbc-4.0.1-standalone.jar" "$@"
