#!/usr/bin/env bash
# Asks pyarrow (ORC C++), ORC Java and Spark about files that stoa-orc writes, and reads theirs.
# Started by scripts/test.sh; see CONTRIBUTING.md. Needs no server.
#
#   clients/orc/run.sh [PYTEST ARGUMENTS…]
#
# Uses the crate's examples write_local and to_arrow: those in $STOA_ORC_EXAMPLES, else it builds
# them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

"$here/setup.sh" || exit $?
if [ ! -x "${STOA_ORC_EXAMPLES:-}/to_arrow" ]; then
  need_rust
  (cd "$STOA_ROOT" && cargo build --locked --quiet -p stoa-orc --example write_local --example to_arrow)
  STOA_ORC_EXAMPLES="$CARGO_TARGET_DIR/debug/examples"
fi
export STOA_ORC_EXAMPLES
export STOA_ORC_TOOLS_JAR="$STOA_TOOLS/orc/orc-tools.jar"
# Readers agree on UTC, so that timestamps can be compared as they are.
export TZ=UTC PYTHONDONTWRITEBYTECODE=1
cd "$here"
"$STOA_TOOLS/interop/venv/bin/python" -m pytest -p no:cacheprovider -ra --durations=5 "$@" .
