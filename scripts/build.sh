#!/usr/bin/env bash
# Builds the release binary and prints where it is and how large it is.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"
need_rust

step "Building Stoa (release); build results in $CARGO_TARGET_DIR"
if [ ! -d "$CARGO_TARGET_DIR/release/deps" ]; then
  note "this is the first build here: several hundred crates, the query engine among them"
fi
start=$(now_ms)
cargo build --release --locked -p stoa </dev/null
stoa="$CARGO_TARGET_DIR/release/stoa"
note "built in $(seconds_since "$start"): $stoa ($(($(stat -c %s "$stoa") / 1000000)) MB)"
