#!/usr/bin/env bash
# Starts deploy/compose.yaml with a real container daemon and uses it as docs/cluster.md says: three daemons, a PostgreSQL
# and an S3 stand-in; writes through one and reads through the others, kills one, stops all and starts them again.
# Needs no server.
# Only in make test-long.
#
# The images are made here of Debian's packages, under the names that the file asks for, and removed at the end: no registry
# of images is asked.
# A container daemon is started if none runs. By hand:
#
#   STOA_BIN=FILE clients/compose/run.sh
#
# Exit status 3 means: there is no container daemon, and none can be started here.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"
cd "$STOA_ROOT" || exit 1

stoa=${STOA_BIN:-$CARGO_TARGET_DIR/release/stoa}
scratch=${STOA_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/stoa-compose.XXXXXX")}
tools="$STOA_TOOLS/compose"
project=stoa-test-$$
passed=0 failed=0 daemon=
made=()

cannot() {
  printf 'cannot start containers: %s\n' "$*" >&2
  exit 3
}

# check NAME COMMAND…: runs it, and counts.
check() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    printf 'ok %s\n' "$name"
  else
    failed=$((failed + 1))
    printf 'not ok %s\n' "$name"
  fi
}

compose() { docker-compose --project-name "$project" --file "$scratch/deploy/compose.yaml" "$@" </dev/null; }

finish() {
  if [ -f "$scratch/deploy/compose.yaml" ]; then
    [ "$failed" = 0 ] || compose logs --tail 40 2>&1 | tail -n 200
    compose down --volumes --timeout 20 >/dev/null 2>&1
  fi
  # They have the names of images that somebody else may mean.
  [ ${#made[@]} = 0 ] || docker rmi --force "${made[@]}" >/dev/null 2>&1
  [ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } 2>/dev/null
  [ -n "${STOA_SCRATCH:-}" ] || rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

[ "$(id -u)" = 0 ] || cannot "not root"
need_command dockerd docker.io iptables && need_command docker-compose docker-compose || cannot "dockerd is needed (package docker.io)"
need_command mmdebstrap mmdebstrap || cannot "mmdebstrap is needed"
need_command psql postgresql-client || cannot "psql is needed (package postgresql-client)"
clients/s3/setup.sh || exit 3
mkdir -p "$tools"

if ! docker info >/dev/null 2>&1; then
  export DOCKER_HOST="unix://$scratch/docker.sock"
  dockerd --host "$DOCKER_HOST" --data-root "$tools/docker" --exec-root "$scratch/docker" --pidfile "$scratch/docker.pid" \
    >"$scratch/dockerd.log" 2>&1 </dev/null &
  daemon=$!
  for _ in $(seq 300); do
    docker info >/dev/null 2>&1 && break
    kill -0 "$daemon" 2>/dev/null || break
    read -rt 0.1 <> <(:) || :
  done
  docker info >/dev/null 2>&1 || { tail -n 5 "$scratch/dockerd.log" >&2; daemon=; cannot "dockerd does not start"; }
fi

# The base that both images of Debian are made of: the release that this machine has, as the binary may need its C library.
suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-stable}")
# image NAME TAR CHANGE…: an image, unless somebody made it or has the real one.
image() {
  local name=$1 tar=$2 change changes=()
  shift 2
  ! docker image inspect "$name" >/dev/null 2>&1 || return 0
  for change in "$@"; do changes+=(--change "$change"); done
  docker import "${changes[@]}" "$tar" "$name" >/dev/null && made+=("$name")
}
# root PACKAGES FILE: a Debian with some packages as a tar, made once.
root() {
  [ ! -f "$2" ] || return 0
  note "a Debian with $1 (mmdebstrap; once, kept in $STOA_TOOLS)"
  mmdebstrap --quiet --format=tar --variant=minbase --include="$1" "$suite" "$2.part" >"$scratch/root.log" 2>&1 </dev/null &&
    mv "$2.part" "$2" || { tail -n 5 "$scratch/root.log" >&2; rm -f "$2.part"; cannot "no Debian could be made"; }
}

step "Images"
root ca-certificates "$tools/debian.tar"
root ca-certificates,postgresql "$tools/postgres.tar"
image debian:stable-slim "$tools/debian.tar" || cannot "no image could be made"
# What the image of the PostgreSQL project does with the three settings of the file.
mkdir -p "$scratch/postgres/usr/local/bin" "$scratch/s3/usr/local/bin"
cat >"$scratch/postgres/usr/local/bin/entry" <<'EOF'
#!/bin/bash
set -e
bin=$(dirname "$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)")
data=/var/lib/postgresql/data
chown postgres "$data"
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
if [ ! -f "$data/PG_VERSION" ]; then
  printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
  chmod 644 /tmp/password
  as_postgres "$bin/initdb" -D "$data" -U "$POSTGRES_USER" --pwfile=/tmp/password -A scram-sha-256 --auth-local=trust >/dev/null
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
  as_postgres "$bin/pg_ctl" -D "$data" -w -s -o "-c listen_addresses='' -k /tmp" start
  as_postgres "$bin/createdb" -h /tmp -U "$POSTGRES_USER" "$POSTGRES_DB"
  as_postgres "$bin/pg_ctl" -D "$data" -w -s stop
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/postgres" -D "$data" -c listen_addresses='*' -k /tmp
EOF
chmod 755 "$scratch/postgres/usr/local/bin/entry"
cp "$tools/postgres.tar" "$scratch/postgres.tar"
tar -C "$scratch/postgres" -rf "$scratch/postgres.tar" ./usr/local/bin/entry
image postgres:17 "$scratch/postgres.tar" 'ENTRYPOINT ["/usr/local/bin/entry"]' 'ENV PGHOST=/tmp' || cannot "no image could be made"
rm "$scratch/postgres.tar"
cp -L "$STOA_TOOLS/s3/versitygw" "$scratch/s3/usr/local/bin/versitygw"
cp "$tools/debian.tar" "$scratch/s3.tar"
tar -C "$scratch/s3" -rf "$scratch/s3.tar" ./usr/local/bin/versitygw
image versity/versitygw:v1.8.0 "$scratch/s3.tar" 'ENTRYPOINT ["/usr/local/bin/versitygw"]' || cannot "no image could be made"
rm "$scratch/s3.tar"

# The project's name is given on the command line: the older docker-compose does not know it in the file.
mkdir -p "$scratch/deploy"
grep -v '^name:' deploy/compose.yaml >"$scratch/deploy/compose.yaml"
export STOA_BINARY="$stoa"

ports=(5433 5443 5453)
# sql NUMBER STATEMENT: asks one of the daemons; 1, 2 or 3.
sql() { PGCONNECT_TIMEOUT=10 psql -X -A -t -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "${ports[$1 - 1]}" -U stoa -d stoa -c "$2" 2>&1 </dev/null; }
# answers NUMBER STATEMENT ANSWER
answers() {
  local answer
  answer=$(sql "$1" "$2")
  [ "$answer" = "$3" ] || { printf '%s at daemon %s: %s, not %s\n' "$2" "$1" "$answer" "$3"; return 1; }
}
# all_ready: waits until each daemon says that it is.
all_ready() {
  local number tries
  for number in 1 2 3; do
    for tries in $(seq 600); do
      [ "$(docker inspect --format '{{.State.Health.Status}}' "$(compose ps -q "stoa$number")" 2>/dev/null)" = healthy ] && continue 2
      read -rt 0.2 <> <(:) || :
    done
    printf 'daemon %s is not ready after %s looks\n' "$number" "$tries"
    return 1
  done
}

step "Three daemons, a PostgreSQL and an S3 stand-in"
check "docker-compose up" compose up --detach
check "all daemons are ready" all_ready
check "they are one server" answers 1 "SELECT count(*) FROM system.daemons WHERE state = 'up'" 3
check "a table by the first" sql 1 "CREATE TABLE sales (day date, account bigint, clicks bigint)"
check "rows by the second" sql 2 "INSERT INTO sales SELECT DATE '2026-01-01' + (n % 31)::int, n % 100, n FROM generate_series(1, 10000) AS t(n)"
check "the third has them at once" answers 3 "SELECT count(*), sum(clicks) FROM sales" "10000|50005000"
check "so has the first" answers 1 "SELECT sum(clicks) FROM sales WHERE account = 7" 495700

step "One is killed"
docker kill "$(compose ps -q stoa2)" >/dev/null
check "rows that it took are there" answers 3 "SELECT count(*), sum(clicks) FROM sales" "10000|50005000"
check "rows by the third" sql 3 "INSERT INTO sales VALUES ('2026-02-01', 7, 1)"
check "the first has them" answers 1 "SELECT count(*), sum(clicks) FROM sales" "10001|50005001"
check "it starts again" compose up --detach stoa2
check "all daemons are ready again" all_ready
check "it has all rows" answers 2 "SELECT count(*), sum(clicks) FROM sales" "10001|50005001"

step "All are stopped, and started again"
check "docker-compose stop" compose stop
codes() { docker inspect --format '{{.State.ExitCode}}' "$(compose ps -q "stoa$1")"; }
for number in 1 2 3; do check "daemon $number ended in order" [ "$(codes "$number")" = 0 ]; done
check "docker-compose up again" compose up --detach
check "all daemons are ready once more" all_ready
for number in 1 2 3; do
  check "daemon $number has all rows" answers "$number" "SELECT count(*), sum(clicks) FROM sales" "10001|50005001"
done

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
