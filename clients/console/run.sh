#!/usr/bin/env bash
# Drives the console in a real Chromium against the running server.
# Started by scripts/test.sh, which gives it a server; see CONTRIBUTING.md.
#
#   run.sh                     tests
#   run.sh --screenshot FILE   and keeps the picture taken, and a dark one beside it (docs/console.png is made so)
#   run.sh --pictures DIR      and makes the pictures of pages, docs/console-*.png, in DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

cannot() {
  printf 'cannot run the console tests: %s\n' "$*" >&2
  exit 3
}

need_command node nodejs npm || cannot "no Node.js; install nodejs and npm"
have npm || apt_install npm || cannot "no npm"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ]; then
  # The fonts are for the picture's looks only.
  apt_install chromium fonts-inter fonts-jetbrains-mono || apt_install chromium ||
    cannot "no Chromium; install the package chromium"
  chromium=$(command -v chromium) || cannot "no Chromium; install the package chromium"
fi

# The one package needed, as the lock file says; kept between runs.
modules="$STOA_TOOLS/console"
if ! cmp -s "$here/package-lock.json" "$modules/package-lock.json"; then
  note "npm ci"
  mkdir -p "$modules"
  cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$modules/"
  (cd "$modules" && npm ci --silent --no-audit --no-fund >/dev/null) || {
    rm -f "$modules/package-lock.json"
    cannot "npm could not install playwright-core"
  }
fi

PLAYWRIGHT="$modules/node_modules/playwright-core/index.mjs" CHROMIUM="$chromium" \
  node "$here/test.mjs" "http://127.0.0.1:$STOA_HTTP_PORT/" "$@"
