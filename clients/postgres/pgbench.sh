#!/usr/bin/env bash
# pgbench with a report as script, in its three query modes. Prints what it measured; what is
# checked is that all transactions succeed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=clients/postgres/check.sh
. "$here/check.sh"
transactions=${STOA_PGBENCH_TRANSACTIONS:-50}

psql -X -q <<'SQL' || exit 1
DROP TABLE IF EXISTS bench_report;
CREATE TABLE bench_report AS
SELECT value % 100 + 1 AS account, value / 100 % 28 AS day, value AS imps, value % 17 AS clicks
FROM generate_series(0, 27999) AS s(value);
SQL

for mode in simple extended prepared; do
  out=$(pgbench -n -M "$mode" -c 4 -j 2 -t "$transactions" -f "$here/report.sql" 2>&1)
  contains "pgbench -M $mode runs all" "number of transactions actually processed: $((4 * transactions))/$((4 * transactions))" "$out"
  failures=$(printf '%s\n' "$out" | sed -nE 's/^number of failed transactions: ([0-9]+) .*/\1/p')
  check "pgbench -M $mode has no failures" "0" "${failures:-0}"
  printf '    %-9s %s\n' "$mode" "$(printf '%s\n' "$out" | grep -E '^(latency average|tps)' | paste -sd' ')"
done

psql -X -q -c 'DROP TABLE bench_report'
finish_checks
