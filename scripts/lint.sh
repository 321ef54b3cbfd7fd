#!/usr/bin/env bash
# Checks everything that is not a test: formatting, layers of crates, documents, clippy, types of the
# console, shell scripts, licences, bans and sources of dependencies. Nothing is changed. Goes on after
# a failure, so that one run shows them all; exits with 1 if any check failed.
#
# A tool that is missing is installed where that is cheap; STOA_LINT_QUICK=1 skips what has to be
# built first (cargo-deny, a few minutes once), STOA_LINT_CLIPPY=tests leaves clippy to the build of the tests.
set -uo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT" || exit 1
need_rust

cargo_deny_version=0.20.2
problems=()

# check NAME COMMAND…: runs one check and keeps its outcome.
check() {
  local name=$1 start
  shift
  start=$(now_ms)
  step "lint: $name"
  if "$@" </dev/null; then
    note "ok ($(seconds_since "$start"))"
  else
    problems+=("$name")
  fi
}

check "format" cargo fmt --all --check
check "layers of crates" python3 scripts/layers.py
check "documents" python3 scripts/check_docs.py
if [ "${STOA_LINT_CLIPPY:-}" = tests ]; then
  step "lint: clippy builds the tests"
else
  check "clippy" cargo clippy --workspace --all-targets --locked -- -D warnings
fi

if have npm && [ -f console/package.json ]; then
  # The compiler goes to the tools, so that the checkout stays clean.
  typescript="$STOA_TOOLS/typescript"
  console_types() {
    if ! cmp -s console/package-lock.json "$typescript/package-lock.json"; then
      mkdir -p "$typescript"
      cp console/package.json console/package-lock.json console/.npmrc "$typescript/"
      (cd "$typescript" && npm ci --silent --no-audit --no-fund) ||
        { rm -f "$typescript/package-lock.json"; return 1; }
    fi
    "$typescript/node_modules/.bin/tsc" -p console/tsconfig.json
  }
  check "console types" console_types
  check "console editor" node console/editor/build.mjs --check --modules "$typescript"
else
  step "lint: console types skipped (no npm here)"
fi

if have shellcheck || apt_install shellcheck; then
  shell_scripts() { git ls-files -z '*.sh' '.ci/run' | xargs -0 shellcheck -x --severity=warning; }
  check "shell scripts" shell_scripts
else
  step "lint: shell scripts skipped (no shellcheck here)"
fi

# cargo-deny is built from source once and kept with the other tools.
deny="$STOA_TOOLS/cargo-deny/bin/cargo-deny"
if have cargo-deny; then
  deny=$(command -v cargo-deny)
elif [ ! -x "$deny" ] && [ "${STOA_LINT_QUICK:-}" != 1 ]; then
  step "Building cargo-deny $cargo_deny_version (once; kept in $STOA_TOOLS)"
  # Not optimised: it runs for seconds.
  CARGO_TARGET_DIR="$STOA_TOOLS/cargo-deny/build" CARGO_PROFILE_DEV_DEBUG=false cargo install --debug --locked --quiet \
    --root "$STOA_TOOLS/cargo-deny" "cargo-deny@$cargo_deny_version" </dev/null &&
    rm -rf "$STOA_TOOLS/cargo-deny/build"
fi
if [ -x "$deny" ]; then
  check "licences, bans, sources" "$deny" --locked --log-level error check --hide-inclusion-graph licenses bans sources
  if [ "${CI:-}" != true ]; then
    # Advisories come over the network from a public repository: told, but not a failure of ours.
    step "lint: advisories"
    "$deny" --locked check advisories </dev/null ||
      note "advisories: not checked, or something to look at (see above)"
  fi
else
  step "lint: licences, bans, sources skipped (no cargo-deny here)"
fi

step "Summary"
if [ ${#problems[@]} -gt 0 ]; then
  printf 'lint failed: %s\n' "$(IFS=,; printf '%s' "${problems[*]}" | sed 's/,/, /g')"
  exit 1
fi
printf 'lint: nothing to report\n'
