#!/usr/bin/env bash
# Compares reports of Stoa, DuckDB and ClickHouse (chdb) on this machine; README.md says how.
#
#   bench/peers/run.sh [--rows N] [--clients 1,2] …     arguments of reports.py
#
# STOA names the binary; without it the release build is made first, once the arguments are understood.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

make_venv "$STOA_TOOLS/peers" "$here/requirements.txt" || fail "no Python environment with the peers"
# Stoa's commands would take these for settings.
exec env -u STOA -u STOA_TOOLS PYTHONDONTWRITEBYTECODE=1 \
  "$STOA_TOOLS/peers/bin/python" "$here/reports.py" ${STOA:+--stoa "$STOA"} "$@"
