#!/usr/bin/env bash
# Measures the report workload on this machine: makes the ad-report table once, then for each number
# of clients starts a server, asks for reports and checks a sample of the answers.
#
#   BENCH_ROWS=N        rows (default 10,000,000)
#   BENCH_DURATION=TIME per number of clients (default 30s)
#   BENCH_CLIENTS=LIST  numbers of clients (default 1,8,32)
#   BENCH_ARGS=…        more for `stoa bench report`, such as "--json" or "--mode simple,prepared"
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"

rows=${BENCH_ROWS:-10000000}
warehouse="$STOA_CACHE/bench/ad_report-$rows"

scripts/build.sh
step "Reports over $rows rows in $warehouse (made once)"
mkdir -p "$warehouse"
# shellcheck disable=SC2086 # several arguments on purpose
"$CARGO_TARGET_DIR/release/stoa" bench report --warehouse "$warehouse" --rows "$rows" \
  --clients "${BENCH_CLIENTS:-1,8,32}" --duration "${BENCH_DURATION:-30s}" ${BENCH_ARGS:-}
