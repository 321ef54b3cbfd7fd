#!/usr/bin/env bash
# Drives a server with PostgreSQL's own clients and drivers: psql, pgbench, psycopg, SQLAlchemy, dbt,
# ibis, pgx and lib/pq (Go), node-pg and postgres.js (Node), psqlodbc, pgcli, pgbouncer, JDBC. tokio-postgres is what
# the Rust tests use.
# Started by scripts/test.sh, which gives it a server; see CONTRIBUTING.md. By hand:
#
#   clients/postgres/run.sh [--host HOST] [--port PORT] [psql|pgbench|psycopg|models|go|node|jdbc|jdbc-page …]
#
# Without a port (flag, STOA_PG_PORT or PGPORT) it starts the binary $STOA itself, by default the
# release build.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

host=${PGHOST:-127.0.0.1}
port=${STOA_PG_PORT:-${PGPORT:-}}
suites=()
while [ $# -gt 0 ]; do
  case "$1" in
    --host) host=$2 && shift 2 ;;
    --port) port=$2 && shift 2 ;;
    -*) fail "unknown flag $1" ;;
    *) suites+=("$1") && shift ;;
  esac
done
[ ${#suites[@]} = 0 ] && suites=(psql pgbench psycopg models go node jdbc jdbc-page)

"$here/setup.sh" || exit $?

scratch=${STOA_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/stoa-postgres.XXXXXX")}
finish() {
  stop_server
  [ -n "${STOA_SCRATCH:-}" ] || rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

# The checks of access control start a server of their own.
export STOA_BIN=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/release/stoa}}
if [ -z "$port" ]; then
  start_server "$STOA_BIN" "$scratch/warehouse" "$scratch/server.log" ||
    fail "the server did not start; set STOA to the binary, or give --port"
  port=$SERVER_PG_PORT
fi

tools="$STOA_TOOLS/postgres"
export PGHOST=$host PGPORT=$port PGUSER=stoa PGDATABASE=stoa PGCONNECT_TIMEOUT=10
# Nothing of the user's own may change what is seen.
export PSQLRC=/dev/null PGCLIENTENCODING=UTF8 PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8
export STOA_SCRATCH=$scratch
unset PGPASSWORD PGSERVICE PGOPTIONS PGTZ PGDATESTYLE

# skip REASON: counts a suite whose tool cannot be had.
skip() {
  note "skipped: $1"
  echo "0 passed, 0 failed, 1 skipped"
}

failed=0
for suite in "${suites[@]}"; do
  step "PostgreSQL client: $suite"
  case "$suite" in
    psql) "$here/psql.sh" ;;
    pgbench) "$here/pgbench.sh" ;;
    psycopg) (cd "$here" && "$tools/venv/bin/python" -m pytest -p no:cacheprovider -q -ra --ignore=models .) ;;
    models) (cd "$here/models" && "$tools/models/bin/python" -m pytest -p no:cacheprovider -q -ra .) ;;
    go)
      # An older one cannot read the module's file.
      if have go && (cd "$here/go" && go list -m >/dev/null 2>&1); then
        "$here/go/run.sh"
      else
        skip "Go 1.25 or newer is not installed"
      fi
      ;;
    node)
      if [ -d "$tools/node/node_modules" ]; then
        NODE_DRIVERS="$tools/node" "$here/node/run.sh"
      else
        skip "Node's drivers are not installed"
      fi
      ;;
    jdbc) java -cp "$tools/postgresql.jar" "$here/JdbcCheck.java" "$host" "$port" ;;
    jdbc-page) "$here/jdbc_page.sh" "$host" "$port" "$tools/postgresql.jar" ;;
    *) fail "there is no suite $suite" ;;
  esac || failed=1
done
exit $failed
