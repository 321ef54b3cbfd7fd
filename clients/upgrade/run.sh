#!/usr/bin/env bash
# Starts the server on states that earlier versions left, with rows in the log of a killed server. README.md says how a
# state is made. Needs no server.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

need_command python3 python3 || { echo "cannot test upgrades: no Python" >&2; exit 3; }
export STOA_BIN=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/release/stoa}} PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/check.py" "$STOA_BIN"
