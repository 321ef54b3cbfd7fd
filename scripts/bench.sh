#!/usr/bin/env bash
# Measures the report workload on this machine: generates the ad-report table once, starts a server
# and asks for reports at 1, 8 and 32 clients.
#
#   BENCH_ROWS=N        rows (default 10,000,000)
#   BENCH_SECONDS=N     seconds per concurrency (default 30)
#   BENCH_CLIENTS=LIST  concurrencies (default "1 8 32")
#   BENCH_JSON=1        one line of JSON per concurrency instead of tables
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"

rows=${BENCH_ROWS:-10000000}
home="$STOA_CACHE/bench"
warehouse="$home/ad_report-$rows"

scripts/build.sh
stoa="$CARGO_TARGET_DIR/release/stoa"
trap stop_server EXIT
trap 'exit 130' INT TERM

mkdir -p "$home"
if [ ! -e "$warehouse/complete" ]; then
  step "Generating $rows rows in $warehouse (once)"
  rm -rf "$warehouse"
  mkdir -p "$warehouse"
  "$stoa" bench generate --rows "$rows" --warehouse "$warehouse"
  touch "$warehouse/complete"
fi

step "Starting the server"
start_server "$stoa" "$warehouse" "$home/server.log" || fail "the server did not start; see $home/server.log"

for clients in ${BENCH_CLIENTS:-1 8 32}; do
  step "$clients clients, ${BENCH_SECONDS:-30} s"
  "$stoa" bench report --port "$SERVER_PG_PORT" --clients "$clients" --seconds "${BENCH_SECONDS:-30}" ${BENCH_JSON:+--json}
done
