#!/usr/bin/env bash
# Runs the tests of the Go drivers and sums them up as the other suites do.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
go test -count=1 -v ./... 2>&1 | awk '
  { print }
  /^ *--- PASS/ { passed++ }
  /^ *--- FAIL/ { failed++ }
  /^ *--- SKIP/ { skipped++ }
  /^FAIL/ { broken = 1 }
  END {
    if (broken && !failed) failed = 1
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0
  }'
