#!/usr/bin/env bash
# From a fresh clone to reports in one command: builds the release binary, loads real data (if it is
# at hand) and generated data, starts a server, answers reports over the PostgreSQL protocol, reads
# the same table with another engine, and leaves the console open until Ctrl-C.
#
#   DEMO_EXIT=1         exit after the last step (for scripts)
#   DEMO_ROWS=N         rows to generate (default 2,000,000)
#   DEMO_ENGINE=NAME    spark, pyiceberg or none; default: spark where there is Java, else pyiceberg
#   STOA_DATA=DIR       where fhv-daily-2015.csv is (default: ../shared/data)
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"

rows=${DEMO_ROWS:-2000000}
home="$STOA_ROOT/.demo"
warehouse="$home/warehouse"
trips_csv="${STOA_DATA:-$STOA_ROOT/../shared/data}/fhv-daily-2015.csv"
demo_started=$(now_ms)

finish() {
  [ -z "${tools_pid:-}" ] || kill "$tools_pid" 2>/dev/null || true
  stop_server || true
}
trap finish EXIT
trap 'printf "\n"; exit 130' INT TERM

need_rust
mkdir -p "$home"

# The other engine is installed while Stoa compiles.
engine=${DEMO_ENGINE:-}
[ -n "$engine" ] || { have java && engine=spark || engine=pyiceberg; }
tools_pid=
if [ "$engine" != none ]; then
  tools_flag=--quick
  [ "$engine" = spark ] && tools_flag=--spark
  clients/interop/setup.sh "$tools_flag" >"$home/tools.log" 2>&1 </dev/null &
  tools_pid=$!
fi

scripts/build.sh
stoa="$CARGO_TARGET_DIR/release/stoa"

step "A new warehouse: $warehouse"
rm -rf "$warehouse"
mkdir -p "$warehouse"

trips=
if [ -f "$trips_csv" ]; then
  step "Loading real data: daily trips of New York's for-hire-vehicle bases, January to August 2015"
  "$stoa" load "$trips_csv" --into trips --create --partition-by 'month(day)' --order-by 'base, day' \
    --warehouse "$warehouse"
  trips=1
else
  step "No real data here ($trips_csv): going on with generated data only"
fi

step "Generating the ad-report table: $rows rows, 13 months, 100,000 accounts, always the same"
"$stoa" bench generate --rows "$rows" --warehouse "$warehouse"

step "Starting the server"
start_server "$stoa" "$warehouse" "$home/server.log" "$(port_or_zero 15002)" "$(port_or_zero 5433)" ||
  fail "the server did not start; see $home/server.log"
note "PostgreSQL protocol on port $SERVER_PG_PORT, console and HTTP on port $SERVER_HTTP_PORT"

# ask SQL: shows the answer to one statement over the PostgreSQL protocol, and the time it took.
# value SQL: prints a single value.
if have psql; then
  psql=(psql -X -q -h 127.0.0.1 -p "$SERVER_PG_PORT" -U demo -d stoa -P pager=off)
  ask() { "${psql[@]}" -c '\timing on' -c "$1" | grep -v '^Timing is'; }
  value() { "${psql[@]}" -At -c "$1"; }
  note "asking with psql -h 127.0.0.1 -p $SERVER_PG_PORT -d stoa"
else
  shell=("$stoa" sql --http-port "$SERVER_HTTP_PORT")
  ask() { "${shell[@]}" --timing -c "$1"; }
  value() { "${shell[@]}" --format csv --no-header --quiet -c "$1"; }
  note "no psql here: asking with stoa sql --http-port $SERVER_HTTP_PORT"
fi

step "What is there"
ask 'SHOW TABLES'

account=$(value "SELECT account_id FROM ad_report GROUP BY account_id ORDER BY count(*) DESC, account_id LIMIT 1")
step "A report: the largest account, the last seven days"
report="SELECT account_id, day, sum(impressions) AS impressions, sum(clicks) AS clicks, sum(cost) AS cost
FROM ad_report
WHERE account_id = $account AND day BETWEEN DATE '2025-12-25' AND DATE '2025-12-31'
GROUP BY account_id, day ORDER BY day"
printf '%s\n\n' "$report"
ask "$report"

if [ -n "$trips" ]; then
  step "A report on the real data: the busiest bases of March 2015"
  report="SELECT base, base_name, sum(trips) AS trips, max(vehicles) AS vehicles
FROM trips
WHERE day BETWEEN DATE '2015-03-01' AND DATE '2015-03-31'
GROUP BY base, base_name ORDER BY trips DESC LIMIT 5"
  printf '%s\n\n' "$report"
  ask "$report"
fi

step "Many reports at once: 8 clients for 10 seconds, each a random account and range of days"
"$stoa" bench report --url "http://127.0.0.1:$SERVER_HTTP_PORT" --port "$SERVER_PG_PORT" --pid "$SERVER_PID" \
  --clients 8 --seconds 10

if [ -n "$tools_pid" ]; then
  step "The same table, read by another engine ($engine) straight from the warehouse"
  jobs -pr | grep -qx "$tools_pid" && note "waiting for its installation to end"
  if wait "$tools_pid"; then
    venv="$STOA_TOOLS/interop/venv"
    [ "$engine" = spark ] || venv="$STOA_TOOLS/interop/venv-quick"
    STOA_INTEROP_JARS="$STOA_TOOLS/interop/jars" "$venv/bin/python" clients/interop/read_table.py \
      "$engine" "$warehouse" public.ad_report impressions 2>"$home/engine.log" ||
      note "$engine could not read the table; see $home/engine.log"
    note "and by Stoa:"
    ask "SELECT count(*) AS rows, sum(impressions) AS impressions FROM ad_report"
  else
    note "skipped: $(tail -n 1 "$home/tools.log")"
  fi
  tools_pid=
fi

step "Done in $(seconds_since "$demo_started")"
printf '\n    Console:  %shttp://127.0.0.1:%s/%s\n' "$BOLD" "$SERVER_HTTP_PORT" "$PLAIN"
printf '    psql:     psql -h 127.0.0.1 -p %s -d stoa\n' "$SERVER_PG_PORT"
printf '    shell:    %s sql --http-port %s\n' "$stoa" "$SERVER_HTTP_PORT"

[ "${DEMO_EXIT:-}" = 1 ] && exit 0
printf '\n    The server runs until you press Ctrl-C.\n'
wait "$SERVER_PID"
