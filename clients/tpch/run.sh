#!/usr/bin/env bash
# TPC-H on one daemon and on three that compute together, against DuckDB on the same rows.
# It starts its own daemons, with a real PostgreSQL for their catalog. Needs no server.
#
#   clients/tpch/run.sh [option of tpch.py …]        for instance --scale 0.1 --query 9
#
# STOA_TPCH_SCALE is the scale factor; STOA_BIN, or STOA, the binary.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

"$here/setup.sh" || exit $?

export STOA_BIN=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/debug/stoa}}
# Nothing of the user's own may change what is seen.
unset PGPASSWORD PGSERVICE PGOPTIONS PGTZ PGDATESTYLE PGHOST PGPORT PGUSER PGDATABASE
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 PGCLIENTENCODING=UTF8 PGCONNECT_TIMEOUT=10 TZ=UTC
step "TPC-H against DuckDB"
"$STOA_TOOLS/tpch/venv/bin/python" "$here/tpch.py" "$@"
