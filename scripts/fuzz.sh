#!/usr/bin/env bash
# Fuzzes the ORC reader and writer, and the reader of HiveServer2's messages, with cargo-fuzz.
#
#   scripts/fuzz.sh TARGET [SECONDS] [LIBFUZZER OPTIONS…]
#
# TARGET: tail, file, streams, index, round_trip, thrift. SECONDS: 60 unless told otherwise,
# 0 = until something is found or Ctrl-C. Needs a nightly toolchain (`rustup toolchain install
# nightly`); cargo-fuzz is built once and kept with the other tools. The corpus is kept in
# fuzz/corpus/TARGET, what was found in fuzz/artifacts/TARGET; both are ignored by git.
# A finding becomes a test in crates/stoa-orc/tests/findings.rs, or crates/stoa-thrift/src/tests.rs.
#
# STOA_FUZZ_SANITIZER=address watches memory as well (half as fast).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"
need_rust

cargo_fuzz_version=0.13.1
targets="tail file streams index round_trip thrift"

target=${1:-}
seconds=${2:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] && shift
case " $targets " in
  *" $target "*) ;;
  *) fail "give one of these targets: $targets" ;;
esac

cargo +nightly --version >/dev/null 2>&1 ||
  fail "cargo-fuzz needs a nightly compiler: rustup toolchain install nightly --profile minimal"

fuzz="$STOA_TOOLS/cargo-fuzz/bin"
if ! have cargo-fuzz && [ ! -x "$fuzz/cargo-fuzz" ]; then
  step "Building cargo-fuzz $cargo_fuzz_version (once; kept in $STOA_TOOLS)"
  CARGO_TARGET_DIR="$STOA_TOOLS/cargo-fuzz/build" cargo install --locked --quiet \
    --root "$STOA_TOOLS/cargo-fuzz" "cargo-fuzz@$cargo_fuzz_version" </dev/null
  rm -rf "$STOA_TOOLS/cargo-fuzz/build"
fi
PATH="$fuzz:$PATH"

# Not the target directory of the other builds: another compiler, other flags.
export CARGO_TARGET_DIR="${STOA_FUZZ_TARGET_DIR:-$CARGO_TARGET_DIR/fuzz}"

if [ ! -d "fuzz/corpus/$target" ]; then
  step "Seeds"
  corpora=()
  for folder in crates/stoa-orc/tests/data ../shared/orc-corpus; do
    [ -d "$folder" ] && corpora+=("$PWD/$folder")
  done
  cargo run --quiet --locked --manifest-path fuzz/Cargo.toml --example seeds -- fuzz/corpus "${corpora[@]}"
fi

step "Fuzzing $target"
cargo +nightly fuzz run --sanitizer "${STOA_FUZZ_SANITIZER:-none}" "$target" -- \
  -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=1024 \
  -print_final_stats=1 "$@"
