#!/usr/bin/env bash
# Compares Stoa's answers with those of a real PostgreSQL: the same rows, the same statements.
# Started by scripts/test.sh, which gives it a server; see CONTRIBUTING.md. By hand:
#
#   clients/oracle/run.sh [--port PORT] [option of oracle.py …]      for instance --seed 7 --only pairs
#
# Without a port (flag, STOA_PG_PORT) it starts the binary $STOA itself, by default the debug build.
# STOA_ORACLE_EXPRESSIONS says how many generated expressions are compared, STOA_ORACLE_SEED
# which ones.
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

# Not below $STOA_SCRATCH, which the user that runs PostgreSQL may be unable to enter.
home=$(mktemp -d "/tmp/stoa-oracle.XXXXXX")
finish() {
  stop_postgres
  [ -n "${STOA_PG_PORT:-}" ] || stop_server
  rm -rf "$home"
}
trap finish EXIT
trap 'exit 130' INT TERM

bin=$(postgresql_bin)
as_owner=()
if [ "$(id -u)" = 0 ]; then
  as_owner=(setpriv --reuid=postgres --regid="$(id -g postgres)" --clear-groups env "HOME=$home")
  mkdir "$home/pg" && chown postgres "$home/pg" && chmod 711 "$home" || exit 1
else
  mkdir "$home/pg"
fi
postgres=("${as_owner[@]}")

# Collation C orders by bytes, as Stoa does.
start_postgres() {
  cd / && "${postgres[@]}" "$bin/initdb" -D "$home/pg/data" -U oracle -A trust -E UTF8 --no-sync \
    --lc-collate=C --lc-ctype=C.UTF-8 --lc-messages=C --lc-monetary=C --lc-numeric=C \
    --lc-time=C >"$home/initdb.log" 2>&1 || { cat "$home/initdb.log" >&2; return 1; }
  "${postgres[@]}" "$bin/pg_ctl" -D "$home/pg/data" -w -t 60 -s -l "$home/pg/log" \
    -o "-c listen_addresses='' -c unix_socket_directories='$home/pg' -c fsync=off \
        -c timezone=UTC -c max_connections=20" start </dev/null
}
stop_postgres() {
  [ -s "$home/pg/data/postmaster.pid" ] || return 0
  (cd / && "${postgres[@]}" "$bin/pg_ctl" -D "$home/pg/data" -m immediate -s stop </dev/null)
}
(start_postgres) || { cat "$home/pg/log" >&2; fail "PostgreSQL did not start"; }

if [ -z "$port" ]; then
  start_server "${STOA:-$CARGO_TARGET_DIR/debug/stoa}" "$home/warehouse" "$home/server.log" ||
    fail "the server did not start; set STOA to the binary, or give --port"
  port=$SERVER_PG_PORT
fi

# Nothing of the user's own may change what is seen.
unset PGPASSWORD PGSERVICE PGOPTIONS PGTZ PGDATESTYLE PGHOST PGPORT PGUSER PGDATABASE
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 PGCLIENTENCODING=UTF8 PGCONNECT_TIMEOUT=10
step "PostgreSQL $("$bin/postgres" --version | awk '{print $3}') as the oracle"
"$STOA_TOOLS/oracle/venv/bin/python" "$here/oracle.py" \
  --stoa "host=127.0.0.1 port=$port user=stoa dbname=stoa" \
  --postgres "host=$home/pg user=oracle dbname=postgres" "${options[@]}"
