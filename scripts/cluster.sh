#!/usr/bin/env bash
# Three daemons that are one server, on this machine: a PostgreSQL for the catalog, an S3 stand-in (versitygw) for
# files and commit logs, three daemons, a table that is written through one and read through another. Leaves
# them running until Ctrl-C.
#
#   CLUSTER_EXIT=1   exit after the last step (for scripts)
#   CLUSTER_DIR=DIR  where everything is kept (default: .cluster; it is emptied)
#   STOA_BIN=FILE    the binary; by default the release build, which is made if need be
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$STOA_ROOT"

home=${CLUSTER_DIR:-$STOA_ROOT/.cluster}
pids=()

finish() {
  local pid
  # The daemons first: they bring their rows into files.
  for pid in "${pids[@]:1}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]:1}"; do wait "$pid" 2>/dev/null || true; done
  [ "${#pids[@]}" = 0 ] || kill "${pids[0]}" 2>/dev/null || true
  end_postgres "$home/pg"
}
trap finish EXIT
trap 'printf "\n"; exit 130' INT TERM

[ -n "${STOA_BIN:-}" ] || scripts/build.sh
stoa=${STOA_BIN:-$CARGO_TARGET_DIR/release/stoa}
clients/s3/setup.sh || fail "the S3 stand-in cannot be had"

# wait_for_port PORT WHAT: until somebody listens.
wait_for_port() {
  local tries
  for tries in $(seq 300); do
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0
    read -rt 0.1 <> <(:) || :
  done
  fail "$2 does not listen after $tries tries"
}

# They are no settings of the daemons.
export -n STOA_BIN STOA_TOOLS

rm -rf "$home"
mkdir -p "$home/objects/stoa"
# PostgreSQL's own user passes through.
chmod 711 "$home"

step "An S3 stand-in, with a bucket"
s3_port=$(free_port)
export AWS_ACCESS_KEY_ID=stoa AWS_SECRET_ACCESS_KEY=only-for-this-machine
ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
  "$STOA_TOOLS/s3/versitygw" --quiet --port "127.0.0.1:$s3_port" posix "$home/objects" >"$home/s3.log" 2>&1 </dev/null &
pids+=($!)
wait_for_port "$s3_port" "the S3 stand-in"
note "http://127.0.0.1:$s3_port, files in $home/objects"

step "A PostgreSQL for the catalog"
begin_postgres "$home/pg"
catalog=$POSTGRES_URL
note "$catalog"

step "Three daemons"
export AWS_ENDPOINT_URL_S3="http://127.0.0.1:$s3_port" AWS_REGION=us-east-1
place=(--warehouse s3://stoa/warehouse --catalog "$catalog")
http=()
for number in 1 2 3; do
  mkdir -p "$home/daemon$number"
  # Each has a folder of its own, as on a machine of its own.
  (cd "$home/daemon$number" && exec "$stoa" server "${place[@]}" --commit-log s3://stoa/logs \
    --http-port 0 --pg-port 0 --flight-port 0 --hive-port 0 >listening.json 2>server.log </dev/null) &
  pids+=($!)
done
for number in 1 2 3; do
  for _ in $(seq 300); do
    [ ! -s "$home/daemon$number/listening.json" ] || break
    read -rt 0.1 <> <(:) || :
  done
  [ -s "$home/daemon$number/listening.json" ] || fail "daemon $number does not listen; see $home/daemon$number/server.log"
  said=$(cat "$home/daemon$number/listening.json")
  http[number]=$(grep -oE '"http_port":[0-9]+' <<<"$said" | cut -d: -f2)
  note "daemon $number: http://127.0.0.1:${http[number]}/, psql -h 127.0.0.1 -p $(grep -oE '"pg_port":[0-9]+' <<<"$said" | cut -d: -f2) -d stoa"
done

# ask NUMBER SQL: one daemon's answer, a value a line.
ask() { (cd "$home" && "$stoa" sql --http-port "${http[$1]}" --format csv --no-header --quiet -c "$2"); }

step "A row is written through daemon 1 and read through daemon 3"
ask 1 "CREATE TABLE visits (account bigint, imps bigint)" >/dev/null
ask 1 "INSERT INTO visits VALUES (7, 42)" >/dev/null
seen=$(ask 3 "SELECT imps FROM visits WHERE account = 7")
note "daemon 3 says $seen"
[ "$seen" = 42 ] || fail "daemon 3 does not see the row"
(cd "$home" && "$stoa" daemons list "${place[@]}")

if [ "${CLUSTER_EXIT:-}" != 1 ]; then
  step "Running until Ctrl-C. Try: kill -9 ${pids[1]}"
  wait
fi
