#!/usr/bin/env bash
# Kills release servers while they take in rows over all protocols, and looks whether anything is lost.
#
#   TORTURE_KILLS=N    how often (default 1000)
#   TORTURE_DIR=DIR    an empty directory on the disk to be tested (default: a temporary one)
#   TORTURE_ARGS=…     more for `stoa bench torture`, such as "--seed 7"
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"

scripts/build.sh
step "Killing ${TORTURE_KILLS:-1000} servers"
# shellcheck disable=SC2086 # several arguments on purpose
"$CARGO_TARGET_DIR/release/stoa" bench torture --kills "${TORTURE_KILLS:-1000}" \
  ${TORTURE_DIR:+--dir "$TORTURE_DIR"} ${TORTURE_ARGS:-}
