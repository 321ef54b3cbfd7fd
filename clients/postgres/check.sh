# Counts checks; sourced by psql.sh and pgbench.sh.
# shellcheck shell=bash

passed=0 failed=0

# check NAME EXPECTED ACTUAL: both must be equal.
check() {
  if [ "$2" = "$3" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED %s\n  expected: %s\n  actual:   %s\n' "$1" "$2" "$3"
  fi
}

# contains NAME PART TEXT: the part must be in the text.
contains() {
  case "$3" in
    *"$2"*) passed=$((passed + 1)) ;;
    *)
      failed=$((failed + 1))
      printf 'FAILED %s\n  expected to contain: %s\n  actual: %s\n' "$1" "$2" "$3"
      ;;
  esac
}

# finish_checks: prints the sum; fails if one check failed.
finish_checks() {
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" = 0 ]
}
