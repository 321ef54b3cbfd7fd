#!/usr/bin/env bash
# Runs the tests of the Node drivers and sums them up as the other suites do.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
node --test --test-reporter=tap ./*.test.mjs | awk '
  { print }
  /^# pass / { passed = $3 }
  /^# fail / { failed = $3 }
  /^# cancelled / { failed += $3 }
  /^# skipped / { skipped = $3 }
  END {
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0 || passed == 0
  }'
