#!/usr/bin/env bash
# Builds the documents as a site that needs no network, with search, and prints where it is. Links and anchors that
# lead nowhere are errors. Exits with 3 if its tools cannot be installed here.
#
#   STOA_SITE=DIR    where the site goes (default: $CARGO_TARGET_DIR/site)
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"

site=$(realpath -m "${STOA_SITE:-$CARGO_TARGET_DIR/site}")
step "The documents as a site"
make_venv "$STOA_TOOLS/docs" docs/site/requirements.txt || exit 3
NO_MKDOCS_2_WARNING=1 "$STOA_TOOLS/docs/bin/python" -m mkdocs --quiet build --strict --site-dir "$site" </dev/null
note "open $site/index.html"
