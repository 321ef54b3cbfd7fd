#!/usr/bin/env bash
# Drives a server with Flight SQL's own clients: ADBC (Python), pyarrow, and the JDBC driver.
# Started by scripts/test.sh, which gives it a server; see CONTRIBUTING.md. By hand:
#
#   clients/flight/run.sh [adbc|jdbc …]
#
# Without STOA_FLIGHT_PORT it starts the binary $STOA itself, by default the release build.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

"$here/setup.sh" || exit $?

export STOA_BIN=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/release/stoa}}
scratch=${STOA_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/stoa-flight.XXXXXX")}
finish() {
  stop_server
  [ -n "${STOA_SCRATCH:-}" ] || rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

port=${STOA_FLIGHT_PORT:-}
if [ -z "$port" ]; then
  start_server "$STOA_BIN" "$scratch/warehouse" "$scratch/server.log" ||
    fail "the server did not start; set STOA to the binary"
  port=$SERVER_FLIGHT_PORT
  export STOA_HTTP_PORT=$SERVER_HTTP_PORT
fi

tools="$STOA_TOOLS/flight"
export STOA_FLIGHT_PORT=$port PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8

[ $# = 0 ] && set -- adbc jdbc
failed=0
for suite in "$@"; do
  step "Flight SQL client: $suite"
  case "$suite" in
    adbc) (cd "$here" && "$tools/venv/bin/python" -m pytest -p no:cacheprovider -q -ra .) ;;
    jdbc)
      # Arrow's Java library wants this; without a logger the driver's own is silent.
      java --add-opens=java.base/java.nio=ALL-UNNAMED -cp "$tools/flight-sql-jdbc.jar" \
        "$here/FlightJdbc.java" 127.0.0.1 "$port"
      ;;
    *) fail "there is no suite $suite" ;;
  esac || failed=1
done
exit $failed
