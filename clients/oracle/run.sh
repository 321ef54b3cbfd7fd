#!/usr/bin/env bash
# Compares Stoa's answers with those of a real PostgreSQL: the same rows, the same statements.
# Started by scripts/test.sh, which gives it a server; see CONTRIBUTING.md. By hand:
#
#   clients/oracle/run.sh [--port PORT] [option of oracle.py …]      for instance --seed 7 --only pairs
#
# Without a port (flag, STOA_PG_PORT) it starts the binary $STOA itself, by default the debug build.
# STOA_ORACLE_EXPRESSIONS says how many generated expressions are compared, STOA_ORACLE_SEED
# which ones. With --daemons N, Stoa is a cluster of N daemons, over which as much is spread as can be, and statements go to each
# in turn. Without any option, a cluster of two follows: it is asked what is drawn about larger tables, or everything
# (STOA_ORACLE_DAEMONS=all).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

port=${STOA_PG_PORT:-}
daemons=
by_hand=$#
options=()
while [ $# -gt 0 ]; do
  case "$1" in
    --port) port=$2 && shift 2 ;;
    --daemons) daemons=$2 && shift 2 ;;
    *) options+=("$1") && shift ;;
  esac
done

"$here/setup.sh" || exit $?
stoa=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/debug/stoa}}

# start_daemons N: a cluster, which spreads reports and scans however small they are; sets ports.
daemon_pids=()
start_daemons() {
  local number
  begin_postgres "$home/catalog"
  ports=()
  for number in $(seq "$1"); do
    mkdir -p "$home/daemon$number"
    "$stoa" server --warehouse "$home/shared" --catalog "$POSTGRES_URL" --shared-table-size 0 --distributed-scan-size 0 \
      --pg-port 0 --http-port 0 --flight-port 0 --hive-port none \
      >"$home/daemon$number/out" 2>"$home/daemon$number/log" </dev/null &
    daemon_pids+=($!)
  done
  for number in $(seq "$1"); do
    for _ in $(seq 600); do
      [ ! -s "$home/daemon$number/out" ] || break
      sleep 0.1
    done
    [ -s "$home/daemon$number/out" ] || { tail -n 30 "$home/daemon$number/log" >&2; fail "daemon $number does not listen"; }
    ports+=("$(json_field pg_port <"$home/daemon$number/out")")
  done
}
stop_daemons() {
  [ ${#daemon_pids[@]} = 0 ] || { kill "${daemon_pids[@]}"; wait "${daemon_pids[@]}"; } 2>/dev/null
  daemon_pids=()
  end_postgres "$home/catalog"
}

# Not below $STOA_SCRATCH, which the user that runs PostgreSQL may be unable to enter.
home=$(mktemp -d "/tmp/stoa-oracle.XXXXXX")
finish() {
  stop_daemons
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

if [ -z "$port$daemons" ]; then
  start_server "$stoa" "$home/warehouse" "$home/server.log" ||
    fail "the server did not start; set STOA to the binary, or give --port"
  port=$SERVER_PG_PORT
fi

ports=("$port")
# Nothing of the user's own may change what is seen.
unset PGPASSWORD PGSERVICE PGOPTIONS PGTZ PGDATESTYLE PGHOST PGPORT PGUSER PGDATABASE
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 PGCLIENTENCODING=UTF8 PGCONNECT_TIMEOUT=10
version=$("$bin/postgres" --version | awk '{print $3}')

# compare STOA DATABASE OPTION …: with a database of PostgreSQL.
compare() {
  "$STOA_TOOLS/oracle/venv/bin/python" "$here/oracle.py" \
    --stoa "${ports[@]/#/host=127.0.0.1 user=stoa dbname=stoa port=}" \
    --postgres "host=$home/pg user=oracle dbname=$1" "${@:2}" "${options[@]}"
}

status=0
if [ -z "$daemons" ]; then
  step "PostgreSQL $version as the oracle"
  compare postgres || status=$?
fi
if [ -n "$daemons" ] || [ "$by_hand" = 0 ]; then
  step "PostgreSQL $version as the oracle of ${daemons:-2} daemons"
  start_daemons "${daemons:-2}"
  only=(--only larger)
  [ -z "$daemons" ] && [ "${STOA_ORACLE_DAEMONS:-}" != all ] || only=()
  # A database that is like the first one.
  (cd / && "${postgres[@]}" "$bin/createdb" -h "$home/pg" -U oracle -T template0 spread) &&
    compare spread "${only[@]}" || status=$?
fi
exit "$status"
