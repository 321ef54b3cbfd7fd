#!/usr/bin/env bash
# Runs the commands of the tutorial and compares what they print with the page, and builds the site of the documents
# with all its links checked. Started by scripts/test.sh; see CONTRIBUTING.md. By hand:
#
#   STOA_BIN=… clients/documents/run.sh
#   STOA_REWRITE=1 STOA_BIN=… clients/documents/run.sh     write the answers into the page
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

stoa=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/release/stoa}}
scratch=${STOA_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/stoa-documents.XXXXXX")}
trap '[ -n "${STOA_SCRATCH:-}" ] || rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
python=$(python_here) || exit 3
passed=0 failed=0 skipped=0

# A page needs a place with the file that it loads, and nothing else.
mkdir -p "$scratch/page"
cp "$STOA_ROOT/docs/data/trips.csv.gz" "$scratch/page/"
if "$python" "$here/run_page.py" "$STOA_ROOT/docs/tutorial.md" "$stoa" "$scratch/page" ${STOA_REWRITE:+--rewrite}; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
fi

STOA_SITE="$scratch/site" "$STOA_ROOT/scripts/docs.sh" >"$scratch/site.log" 2>&1
case $? in
  0) passed=$((passed + 1)) ;;
  3) skipped=$((skipped + 1)) ;;
  *) failed=$((failed + 1)) && cat "$scratch/site.log" ;;
esac

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
