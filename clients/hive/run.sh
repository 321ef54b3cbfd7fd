#!/usr/bin/env bash
# Drives a server with the clients of HiveServer2: PyHive, SQLAlchemy's dialect of it, impyla, Hive's JDBC driver (3.1.3,
# 4.0.1 and 4.1.0) and beeline. Started by scripts/test.sh, which gives it a server; see CONTRIBUTING.md. By hand:
#
#   clients/hive/run.sh [python|jdbc|beeline …]
#
# Without STOA_HIVE_PORT it starts the binary $STOA itself, by default the release build.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

"$here/setup.sh" || exit $?

export STOA_BIN=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/release/stoa}}
scratch=${STOA_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/stoa-hive.XXXXXX")}
finish() {
  stop_server
  [ -n "${STOA_SCRATCH:-}" ] || rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

port=${STOA_HIVE_PORT:-}
if [ -z "$port" ]; then
  start_server "$STOA_BIN" "$scratch/warehouse" "$scratch/server.log" ||
    fail "the server did not start; set STOA to the binary"
  port=$SERVER_HIVE_PORT
  export STOA_HTTP_PORT=$SERVER_HTTP_PORT STOA_PG_PORT=$SERVER_PG_PORT
fi

tools="$STOA_TOOLS/hive"
export STOA_HIVE_PORT=$port HIVE_TOOLS=$tools PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8

[ $# = 0 ] && set -- python jdbc beeline
failed=0
for suite in "$@"; do
  step "Client of HiveServer2: $suite"
  case "$suite" in
    python) (cd "$here" && "$tools/venv/bin/python" -m pytest -p no:cacheprovider -q -ra .) ;;
    jdbc)
      for driver in "$tools"/hive-jdbc-*-standalone.jar; do
        note "$(basename "$driver")"
        java -cp "$driver" "$here/HiveJdbc.java" 127.0.0.1 "$port" 2> >(grep -v SLF4J >&2) || failed=1
        "$here/jdbc_page.sh" 127.0.0.1 "$port" "$driver" || failed=1
      done
      ;;
    beeline) "$here/beeline.sh" 127.0.0.1 "$port" ;;
    *) fail "there is no suite $suite" ;;
  esac || failed=1
done
exit $failed
