#!/usr/bin/env bash
# Sessions with other settings share a server's caches; every answer is compared with DuckDB's on the
# same rows. Started by scripts/test.sh, which gives it a server; see CONTRIBUTING.md. By hand:
#
#   clients/duckdb/run.sh [--port PORT] [option of shared.py …]        for instance --seed 7
#
# Without a port (flag, STOA_PG_PORT) it starts the binary $STOA itself, by default the debug build.
# STOA_DUCKDB_STATEMENTS says how many statements are compared.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

port=${STOA_PG_PORT:-}
options=()
while [ $# -gt 0 ]; do
  case "$1" in
    --port) port=$2 && shift 2 ;;
    *) options+=("$1") && shift ;;
  esac
done

"$here/setup.sh" || exit $?

home=$(mktemp -d "${TMPDIR:-/tmp}/stoa-duckdb.XXXXXX")
finish() {
  [ -n "${STOA_PG_PORT:-}" ] || stop_server
  rm -rf "$home"
}
trap finish EXIT
trap 'exit 130' INT TERM

if [ -z "$port" ]; then
  start_server "${STOA:-$CARGO_TARGET_DIR/debug/stoa}" "$home/warehouse" "$home/server.log" ||
    fail "the server did not start; set STOA to the binary, or give --port"
  port=$SERVER_PG_PORT
fi

# Nothing of the user's own may change what is seen.
unset PGPASSWORD PGSERVICE PGOPTIONS PGTZ PGDATESTYLE PGHOST PGPORT PGUSER PGDATABASE
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 PGCLIENTENCODING=UTF8 PGCONNECT_TIMEOUT=10 TZ=UTC
step "DuckDB as the oracle of sessions that share caches"
"$STOA_TOOLS/duckdb/venv/bin/python" "$here/shared.py" \
  --stoa "host=127.0.0.1 port=$port user=stoa dbname=stoa" "${options[@]}"
