#!/usr/bin/env bash
# The suites that make test runs at a size of a minute or so, at their full size.
#
#   scripts/test-long.sh             all of them
#   scripts/test-long.sh oracle      only those named
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

export STOA_ORACLE_EXPRESSIONS=${STOA_ORACLE_EXPRESSIONS:-100000}

suites=("$@")
[ ${#suites[@]} = 0 ] && suites=(oracle)
exec scripts/test.sh "${suites[@]}"
