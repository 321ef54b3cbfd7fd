#!/usr/bin/env bash
# Kills release servers while they take in rows over all protocols, and looks whether anything is lost;
# then lets sessions change the same tables by statements of all kinds, and checks what each of them saw.
#
#   TORTURE_KILLS=N    how often (default 1000)
#   TORTURE_DIR=DIR    an empty directory on the disk to be tested (default: a temporary one)
#   TORTURE_ARGS=…     more for `stoa bench torture`, such as "--seed 7"
#   TORTURE_STATEMENTS=N   then as many statements of sessions whose histories are checked (default 100000),
#   TORTURE_HISTORY_KILLS=N   and as many kills of their servers (default 2000)
#   STOA_BIN=FILE      the binary; by default the release build, which is made if need be
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"

[ -n "${STOA_BIN:-}" ] || scripts/build.sh
stoa=${STOA_BIN:-$CARGO_TARGET_DIR/release/stoa}
step "Killing ${TORTURE_KILLS:-1000} servers"
# shellcheck disable=SC2086 # several arguments on purpose
"$stoa" bench torture --kills "${TORTURE_KILLS:-1000}" \
  ${TORTURE_DIR:+--dir "$TORTURE_DIR"} ${TORTURE_ARGS:-}
step "Checking the histories of ${TORTURE_STATEMENTS:-100000} statements, and of ${TORTURE_HISTORY_KILLS:-2000} kills"
# shellcheck disable=SC2086
"$stoa" bench torture --histories --statements "${TORTURE_STATEMENTS:-100000}" \
  --kills "${TORTURE_HISTORY_KILLS:-2000}" ${TORTURE_DIR:+--dir "$TORTURE_DIR"} ${TORTURE_ARGS:-}
