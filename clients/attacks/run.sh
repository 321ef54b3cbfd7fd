#!/usr/bin/env bash
# Attacks servers over plain sockets, and asks them for a report afterwards: connections that say
# nothing, slow heads, absurd lengths, damaged messages, deep and wide statements.
# Started by scripts/test.sh; see README.md for the sizes. By hand:
#
#   STOA_BIN=… clients/attacks/run.sh [pytest's arguments]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

"$here/setup.sh" || exit $?
export STOA_BIN=${STOA_BIN:-${STOA:-$CARGO_TARGET_DIR/release/stoa}}
export PYTHONDONTWRITEBYTECODE=1
scratch=${STOA_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/stoa-attacks.XXXXXX")}
trap '[ -n "${STOA_SCRATCH:-}" ] || rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
cd "$here" || exit 1
"$STOA_TOOLS/attacks/venv/bin/python" -m pytest -p no:cacheprovider -q -ra --durations=5 \
  --basetemp="$scratch/attacks" "$@" .
