#!/usr/bin/env bash
# Runs the tests: all of them, or only those named.
#
#   scripts/test.sh                     cargo test, then every clients/*/run.sh (but those that only make test-long has)
#   scripts/test.sh rust                cargo test only
#   scripts/test.sh postgres interop    only clients/postgres/run.sh and clients/interop/run.sh
#   scripts/test.sh orc                 only clients/orc/run.sh, which needs no server
#
# Two suites run at a time, as most of them wait more than they compute (STOA_TEST_LANES=1: one). The Rust tests are one
# of them and print as they run; what a client suite prints comes when it has ended.
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

lanes=${STOA_TEST_LANES:-2}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/stoa-test.XXXXXX")
finish() {
  local job
  # Each job is a process group.
  for job in $(jobs -p); do kill -TERM -- "-$job" 2>/dev/null; done
  wait
  if [ "${STOA_KEEP:-}" = 1 ]; then note "kept: $scratch"; else rm -rf "$scratch"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

# record NAME PASSED FAILED SKIPPED START_MS REMARK: notes how a suite ended.
record() {
  printf '%-10s %5d passed %4d failed %4d skipped  %9s  %s\n' "$1" "$2" "$3" "$4" "$(seconds_since "$5")" "$6" \
    >"$scratch/$1.line"
  printf '%d %d %d\n' "$2" "$3" "$4" >"$scratch/$1.counts"
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
  [ -z "$found" ] || printf '%s\n' "$2:" "$found" "" >"$scratch/$2.failures"
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
  p=$(count "$log" passed) f=$(count "$log" failed)
  # A crate that does not build, or a test binary that dies, counts as one failure.
  [ "$status" != 0 ] && [ "$f" = 0 ] && f=1
  [ "$f" = 0 ] || keep_failures "$log" rust
  record rust "$p" "$f" "$(count "$log" ignored)" "$start" ""
}

# Builds the tests, the binary that the client suites drive, and the examples that some of them use: by one
# command, so that nothing is compiled twice.
build() {
  step "Building the tests and the binary; build results in $CARGO_TARGET_DIR"
  cargo test --workspace --locked --no-run </dev/null || return 1
  STOA_BIN=${STOA_BIN:-"$CARGO_TARGET_DIR/debug/stoa"}
  export STOA_ORC_EXAMPLES="$CARGO_TARGET_DIR/debug/examples"
}

# Installs what the suites need, one after the other, as some share tools. What fails here is told by the suite, which
# tries it again.
set_up() {
  local suite
  for suite in "${suites[@]}"; do
    [ ! -x "clients/$suite/setup.sh" ] || "clients/$suite/setup.sh" </dev/null || true
  done
}

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

# run_suite NAME: one suite; a client suite prints when it has ended, unless it is the only one.
run_suite() {
  if [ "$1" = rust ]; then
    rust_suite
  elif needs_server "$1" && [ -z "${STOA_BIN:-}" ]; then
    record "$1" 0 1 0 "$(now_ms)" "the stoa binary does not build"
  elif [ ${#suites[@]} = 1 ]; then
    client_suite "$1"
  else
    client_suite "$1" >"$scratch/$1.out" 2>&1
    cat "$scratch/$1.out"
  fi
}

needs_build() {
  local suite
  for suite in "${suites[@]}"; do
    [ "$suite" != rust ] || return 0
    [ -n "${STOA_BIN:-}" ] || ! needs_server "$suite" || return 0
  done
  return 1
}
set -m
set_up >"$scratch/set-up.out" 2>&1 &
set_up=$!
! needs_build || build
step "Tools of the client suites"
wait "$set_up"
cat "$scratch/set-up.out"

running=0
for suite in "${suites[@]}"; do
  [ "$running" -lt "$lanes" ] || { wait -n; running=$((running - 1)); }
  (trap stop_server EXIT && trap 'exit 130' INT TERM && run_suite "$suite") &
  running=$((running + 1))
done
wait

passed=0 failed=0 skipped=0
for suite in "${suites[@]}"; do
  # One that broke off has left nothing.
  [ -f "$scratch/$suite.counts" ] || record "$suite" 0 1 0 "$(now_ms)" "broke off"
  read -r p f s <"$scratch/$suite.counts"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
if compgen -G "$scratch/*.failures" >/dev/null; then
  step "What failed"
  cat "$scratch"/*.failures
fi
step "Summary"
for suite in "${suites[@]}"; do cat "$scratch/$suite.line"; done
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
