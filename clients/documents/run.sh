#!/usr/bin/env bash
# Runs the commands of the tutorial and compares what they print with the page; runs what the pages "Coming from …" say, on
# data of the systems that readers come from; and builds the site of the documents with all its links checked. Started by scripts/test.sh; see CONTRIBUTING.md. By hand:
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

# Not in the suite's folder: PostgreSQL runs as somebody else, who has to get there.
home=$(mktemp -d "${TMPDIR:-/tmp}/stoa-coming.XXXXXX")
chmod 711 "$home"
trap 'end_postgres "$home/pg"; rm -rf "$home"; [ -n "${STOA_SCRATCH:-}" ] || rm -rf "$scratch"' EXIT
if postgresql_bin >/dev/null && have psql; then
  begin_postgres "$home/pg"
  PGPORT=${POSTGRES_URL##*:}
  export PGHOST=127.0.0.1 PGUSER=stoa PGPORT=${PGPORT%%/*}
fi
"$python" "$here/coming.py" "$stoa" "$home" | tee "$scratch/coming.log"
while read -r count what; do
  declare "$what=$((${!what} + count))"
done < <(tail -n 1 "$scratch/coming.log" | tr , '\n')

STOA_SITE="$scratch/site" "$STOA_ROOT/scripts/docs.sh" >"$scratch/site.log" 2>&1
case $? in
  0) passed=$((passed + 1)) ;;
  3) skipped=$((skipped + 1)) ;;
  *) failed=$((failed + 1)) && cat "$scratch/site.log" ;;
esac

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
