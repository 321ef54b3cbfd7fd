#!/usr/bin/env bash
# Kills, freezes and ends release daemons of a cluster while all are written to, cuts them off from PostgreSQL and from each
# other, and looks whether anything is lost.
#
#   TORTURE_FAULTS=N   how often (default 1000)
#   TORTURE_DAEMONS=N  how many daemons (default 3)
#   TORTURE_STORE=s3   files and logs in an S3 stand-in (versitygw), from which daemons are cut off, too
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

store=()
s3_pid=

finish() {
  [ -z "$s3_pid" ] || kill "$s3_pid" 2>/dev/null || true
  end_postgres "$home/pg"
  # What is wrong can be looked at.
  [ -d "$home/warehouse" ] || rm -rf "$home"
}
trap finish EXIT
trap 'exit 130' INT TERM

begin_postgres "$home/pg"
if [ "${TORTURE_STORE:-}" = s3 ]; then
  clients/s3/setup.sh || fail "the S3 stand-in cannot be had"
  s3_port=$(free_port)
  mkdir -p "$home/objects/stoa"
  export AWS_ACCESS_KEY_ID=stoa AWS_SECRET_ACCESS_KEY=only-for-this-machine AWS_REGION=us-east-1
  ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
    "$STOA_TOOLS/s3/versitygw" --quiet --port "127.0.0.1:$s3_port" posix "$home/objects" >"$home/s3.log" 2>&1 </dev/null &
  s3_pid=$!
  for _ in $(seq 300); do
    (exec 3<>"/dev/tcp/127.0.0.1/$s3_port") 2>/dev/null && break
    read -rt 0.1 <> <(:) || :
  done
  store=(--store s3://stoa/warehouse --store-endpoint "http://127.0.0.1:$s3_port")
fi
export -n STOA_BIN STOA_TOOLS
step "Hurting one of ${TORTURE_DAEMONS:-3} daemons, ${TORTURE_FAULTS:-1000} times"
# shellcheck disable=SC2086 # several arguments on purpose
"$stoa" bench torture --daemons "${TORTURE_DAEMONS:-3}" --catalog "$POSTGRES_URL" \
  --kills "${TORTURE_FAULTS:-1000}" --dir "$home/warehouse" "${store[@]}" ${TORTURE_ARGS:-}
