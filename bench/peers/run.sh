#!/usr/bin/env bash
# Compares reports of Stoa, DuckDB and ClickHouse (chdb) on this machine; README.md says how.
#
#   bench/peers/run.sh [--rows N] [--clients 1,2] …     arguments of reports.py
#
# STOA names the binary; without it the release build is made first.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

make_venv "$STOA_TOOLS/peers" "$here/requirements.txt" || fail "no Python environment with the peers"
if [ -z "${STOA:-}" ]; then
  "$STOA_ROOT/scripts/build.sh"
  STOA="$CARGO_TARGET_DIR/release/stoa"
fi
PYTHONDONTWRITEBYTECODE=1 "$STOA_TOOLS/peers/bin/python" "$here/reports.py" --stoa "$STOA" "$@"
