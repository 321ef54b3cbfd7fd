#!/usr/bin/env bash
# Removes what the demo and the tests left in the checkout, and this project's build results.
# Tools ($STOA_TOOLS) stay, as they take long to install; `scripts/clean.sh --tools` removes them too.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"

step "Removing demo data and caches in the checkout"
rm -rf .demo .cluster .pytest_cache clients/*/.pytest_cache
find clients console -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
step "Removing build results in $CARGO_TARGET_DIR"
[ ! -d "$CARGO_TARGET_DIR" ] || cargo clean
if [ "${1:-}" = --tools ]; then
  step "Removing tools in $STOA_TOOLS"
  rm -rf "$STOA_TOOLS"
else
  note "kept: $STOA_TOOLS (scripts/clean.sh --tools removes it)"
fi
