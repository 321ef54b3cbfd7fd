#!/usr/bin/env bash
# Runs the tests: all of them, or only those named.
#
#   scripts/test.sh                     cargo test, then every clients/*/run.sh (but those that only make test-long has)
#   scripts/test.sh rust                cargo test only
#   scripts/test.sh postgres interop    only clients/postgres/run.sh and clients/interop/run.sh
#   scripts/test.sh orc                 only clients/orc/run.sh, which needs no server
#
# What a client suite (clients/NAME/run.sh) is given and has to do is written in CONTRIBUTING.md.
# The last line printed is the sum of all suites: `N passed, N failed, N skipped`.
set -uo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT" || exit 1

if [ $# -gt 0 ]; then
  suites=("$@")
else
  suites=(rust)
  for run in clients/*/run.sh; do
    # A suite that only make test-long has says so in its run.sh.
    [ -x "$run" ] && ! grep -q '^# Only in make test-long\.$' "$run" && suites+=("$(basename "$(dirname "$run")")")
  done
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/stoa-test.XXXXXX")
finish() {
  stop_server
  if [ "${STOA_KEEP:-}" = 1 ]; then note "kept: $scratch"; else rm -rf "$scratch"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

passed=0 failed=0 skipped=0
table=() failures=()

# record NAME PASSED FAILED SKIPPED START_MS REMARK: adds one suite to the sums.
record() {
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
  table+=("$(printf '%-10s %5d passed %4d failed %4d skipped  %9s  %s' "$1" "$2" "$3" "$4" "$(seconds_since "$5")" "$6")")
}

# count LOG WORD: adds up all "N WORD" in the summary lines of LOG: those of cargo test, of pytest,
# and the plain `N passed, N failed`.
count() {
  sed -E 's/\x1b\[[0-9;]*m//g' "$1" |
    grep -E '^test result: |^=+ .* in [0-9.]+s.*=+$|^[0-9]+ (passed|failed|skipped)(, [0-9]+ [a-z]+)*( in [0-9.]+s.*)?$' |
    grep -oE "[0-9]+ $2\b" | awk '{ sum += $1 } END { print sum + 0 }'
}

# keep_failures LOG NAME: what failed in LOG, with the three lines that follow, for the end of the output:
# a reader of a long log looks there, and a log that is cut off is cut off before it.
keep_failures() {
  local found
  found=$(sed -E 's/\x1b\[[0-9;]*m//g' "$1" |
    grep -E -A 3 '^(FAILED|FAIL|ERROR)\b|^test .* FAILED$|^not ok\b' | cut -c1-300 | head -n 40)
  [ -z "$found" ] || failures+=("$2:" "$found" "")
}

need_rust
# Tests make certificates with it.
need_command openssl openssl || fail "openssl is needed (package openssl)"

rust_suite() {
  local start log="$scratch/rust.log" status p f
  start=$(now_ms)
  step "Rust tests (cargo test --workspace); build results in $CARGO_TARGET_DIR"
  cargo test --workspace --locked --no-fail-fast </dev/null 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  examples_are_built
  p=$(count "$log" passed) f=$(count "$log" failed)
  # A crate that does not build, or a test binary that dies, counts as one failure.
  [ "$status" != 0 ] && [ "$f" = 0 ] && f=1
  [ "$f" = 0 ] || keep_failures "$log" rust
  record rust "$p" "$f" "$(count "$log" ignored)" "$start" ""
}

# The binary that the client suites drive, and one server with an empty warehouse of its own for
# each suite, so that none sees what another left.
build_stoa() {
  [ -n "${STOA_BIN:-}" ] && return 0
  step "Building the stoa binary for the client suites"
  # The same command line as the tests', so that nothing is compiled twice.
  cargo test --workspace --locked --no-run </dev/null || return 1
  STOA_BIN="$CARGO_TARGET_DIR/debug/stoa"
  examples_are_built
}

# Cargo builds the examples with the tests: a suite that uses them need not build them again.
examples_are_built() { export STOA_ORC_EXAMPLES="$CARGO_TARGET_DIR/debug/examples"; }

# needs_server NAME: whether a suite drives a server; one that does not says so in its run.sh.
needs_server() { ! grep -q '^# .*Needs no server\.$' "clients/$1/run.sh" 2>/dev/null; }

client_suite() {
  local name=$1 start log="$scratch/$1.log" status p f s remark=""
  start=$(now_ms)
  step "Client suite: $name"
  if [ ! -x "clients/$name/run.sh" ]; then
    printf 'there is no clients/%s/run.sh\n' "$name"
    record "$name" 0 1 0 "$start" "no such suite"
    return
  fi
  mkdir -p "$scratch/$name"
  if needs_server "$name" && ! start_server "$STOA_BIN" "$scratch/$name/warehouse" "$scratch/$name/server.log"; then
    record "$name" 0 1 0 "$start" "the server did not start"
    return
  fi
  [ -n "${SERVER_PID:-}" ] &&
    note "server: PostgreSQL on port $SERVER_PG_PORT, HTTP on port $SERVER_HTTP_PORT," \
      "Flight SQL on port $SERVER_FLIGHT_PORT, HiveServer2 on port $SERVER_HIVE_PORT"
  # Without a server there are no ports: an empty one is a wrong setting for the binary.
  local ports=()
  [ -z "${SERVER_PID:-}" ] || ports=(STOA_PG_PORT="$SERVER_PG_PORT" STOA_HTTP_PORT="$SERVER_HTTP_PORT"
    STOA_FLIGHT_PORT="$SERVER_FLIGHT_PORT" STOA_HIVE_PORT="$SERVER_HIVE_PORT")
  env "${ports[@]}" STOA_BIN="${STOA_BIN:-}" \
    STOA_WAREHOUSE="$scratch/$name/warehouse" STOA_SCRATCH="$scratch/$name" \
    "clients/$name/run.sh" </dev/null 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  p=$(count "$log" passed) s=$(count "$log" skipped)
  f=$(($(count "$log" failed) + $(count "$log" errors?)))
  if [ "$status" = 3 ] && [ "$f" = 0 ]; then
    s=$((s + 1)) remark="skipped: its tools cannot be installed here (see above)"
    printf '%s: skipped\n' "$name"
  elif [ "$status" != 0 ] && [ "$f" = 0 ]; then
    f=1 remark="exit status $status"
  elif [ $((p + f + s)) = 0 ]; then
    f=1 remark="reported no test at all"
  fi
  if [ -n "${SERVER_PID:-}" ] && ! kill -0 "$SERVER_PID" 2>/dev/null; then
    f=$((f + 1)) remark="the server died"
  elif ! stop_server; then
    f=$((f + 1)) remark="the server did not stop cleanly on SIGTERM"
  fi
  [ "$f" = 0 ] || keep_failures "$log" "$name"
  case "$remark" in "the server"*) tail -n 30 "$scratch/$name/server.log" ;; esac
  record "$name" "$p" "$f" "$s" "$start" "$remark"
}

for suite in "${suites[@]}"; do
  if [ "$suite" = rust ]; then
    rust_suite
  elif ! needs_server "$suite" || build_stoa; then
    client_suite "$suite"
  else
    record "$suite" 0 1 0 "$(now_ms)" "the stoa binary does not build"
  fi
done

if [ ${#failures[@]} != 0 ]; then
  step "What failed"
  printf '%s\n' "${failures[@]}"
fi
step "Summary"
printf '%s\n' "${table[@]}" ""
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
