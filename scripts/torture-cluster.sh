#!/usr/bin/env bash
# Kills, freezes and ends release daemons of a cluster while all are written to, and looks whether anything is lost.
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
bin=$(postgresql_bin) || { apt_install postgresql && bin=$(postgresql_bin); } || fail "initdb is needed (package postgresql)"
home=$(mktemp -d "${TMPDIR:-/tmp}/stoa-torture-cluster.XXXXXX")

# PostgreSQL does not run as root.
owner=()
if [ "$(id -u)" = 0 ]; then
  owner=(setpriv --reuid=postgres "--regid=$(id -g postgres)" --clear-groups)
  chmod 711 "$home"
fi
mkdir "$home/pg"
[ "${#owner[@]}" = 0 ] || chown postgres "$home/pg"
as_owner() { (cd / && "${owner[@]}" env HOME="$home/pg" "$@"); }

finish() {
  as_owner "$bin/pg_ctl" -D "$home/pg/data" -m immediate -s stop </dev/null || true
  # What is wrong can be looked at.
  [ -d "$home/warehouse" ] || rm -rf "$home"
}
trap finish EXIT
trap 'exit 130' INT TERM

as_owner "$bin/initdb" -D "$home/pg/data" -U stoa -A trust -E UTF8 --no-sync >/dev/null </dev/null
port=$(shuf -i 20000-32000 -n 1)
as_owner "$bin/pg_ctl" -D "$home/pg/data" -w -s -l "$home/pg/log" \
  -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=''" start </dev/null
as_owner "$bin/createdb" -h 127.0.0.1 -p "$port" -U stoa stoa </dev/null
export -n STOA_BIN STOA_TOOLS
step "Hurting one of ${TORTURE_DAEMONS:-3} daemons, ${TORTURE_FAULTS:-1000} times"
# shellcheck disable=SC2086 # several arguments on purpose
"$stoa" bench torture --daemons "${TORTURE_DAEMONS:-3}" --catalog "postgres://stoa@127.0.0.1:$port/stoa" \
  --kills "${TORTURE_FAULTS:-1000}" --dir "$home/warehouse" ${TORTURE_ARGS:-}
