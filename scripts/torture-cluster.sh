#!/usr/bin/env bash
# Kills, freezes and ends release daemons of a cluster while all are written to, cuts them off from PostgreSQL and from each
# other, and looks whether anything is lost.
#
#   TORTURE_FAULTS=N   how often (default 1000)
#   TORTURE_DAEMONS=N  how many daemons (default 3)
#   TORTURE_ARGS=…     more for `stoa bench torture`, such as "--seed 7"
#   STOA_BIN=FILE      the binary; by default the release build, which is made if need be
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"

[ -n "${STOA_BIN:-}" ] || scripts/build.sh
stoa=${STOA_BIN:-$CARGO_TARGET_DIR/release/stoa}
home=$(mktemp -d "${TMPDIR:-/tmp}/stoa-torture-cluster.XXXXXX")
# PostgreSQL's own user passes through.
chmod 711 "$home"

finish() {
  end_postgres "$home/pg"
  # What is wrong can be looked at.
  [ -d "$home/warehouse" ] || rm -rf "$home"
}
trap finish EXIT
trap 'exit 130' INT TERM

begin_postgres "$home/pg"
export -n STOA_BIN STOA_TOOLS
step "Hurting one of ${TORTURE_DAEMONS:-3} daemons, ${TORTURE_FAULTS:-1000} times"
# shellcheck disable=SC2086 # several arguments on purpose
"$stoa" bench torture --daemons "${TORTURE_DAEMONS:-3}" --catalog "$POSTGRES_URL" \
  --kills "${TORTURE_FAULTS:-1000}" --dir "$home/warehouse" ${TORTURE_ARGS:-}
