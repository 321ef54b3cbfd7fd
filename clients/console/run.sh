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

export PLAYWRIGHT="$modules/node_modules/playwright-core/index.mjs" CHROMIUM="$chromium"
status=0
node "$here/test.mjs" "http://127.0.0.1:$STOA_HTTP_PORT/" "$@" || status=1
[ $# = 0 ] || exit "$status"

# A server that asks for passwords.
guarded="$STOA_SCRATCH/guarded"
mkdir -p "$guarded"
# Becomes it: to be called in a subshell, whose process is the server then.
own_server() {
  cd "$guarded" && unset PLAYWRIGHT CHROMIUM && exec env -u STOA_BIN -u STOA_TOOLS -u STOA_HTTP_PORT -u STOA_PG_PORT \
    -u STOA_FLIGHT_PORT -u STOA_HIVE_PORT -u STOA_WAREHOUSE -u STOA_SCRATCH "$STOA_BIN" "$@"
}
(own_server sql --warehouse warehouse -c "CREATE USER ann PASSWORD 'pencil'" -c "CREATE USER bob SUPERUSER PASSWORD 'pencil'" >/dev/null)
(own_server server --warehouse warehouse --access-control --http-port 0 --pg-port 0 --flight-port 0 --hive-port 0 \
  >"$guarded/listening.json" 2>"$guarded/server.log" </dev/null) &
guarded_pid=$!
for _ in $(seq 600); do
  [ ! -s "$guarded/listening.json" ] || break
  read -rt 0.1 <> <(:) || :
done
[ -s "$guarded/listening.json" ] || { cat "$guarded/server.log" && fail "the server with passwords does not listen"; }
port=$(sed -E 's/.*"http_port":([0-9]+).*/\1/' "$guarded/listening.json")
STOA_ROLES="ann:pencil bob:pencil" node "$here/test.mjs" "http://127.0.0.1:$port/" --login || status=1
kill "$guarded_pid" && wait "$guarded_pid" || true

# The page of a cluster, on three daemons.
if ! postgresql_bin >/dev/null; then
  echo "0 passed, 0 failed, 1 skipped"
  note "no PostgreSQL server here: the page Cluster is not tested"
  exit "$status"
fi
# Not in the suite's folder: PostgreSQL runs as somebody else, who has to get there.
home=$(mktemp -d "${TMPDIR:-/tmp}/stoa-console.XXXXXX")
chmod 711 "$home"
pids=()
finish() {
  # A test has killed one of them.
  [ "${#pids[@]}" = 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  end_postgres "$home/pg"
  rm -rf "$home"
}
trap finish EXIT
begin_postgres "$home/pg"
urls=()
for number in 1 2 3; do
  (cd "$home" && unset PLAYWRIGHT CHROMIUM && exec env -u STOA_BIN -u STOA_TOOLS -u STOA_HTTP_PORT -u STOA_PG_PORT \
    -u STOA_FLIGHT_PORT -u STOA_WAREHOUSE -u STOA_SCRATCH "$STOA_BIN" server --warehouse warehouse \
    --catalog "$POSTGRES_URL" --http-port 0 --pg-port 0 --flight-port 0 --hive-port 0 >"listening$number.json" 2>"server$number.log" </dev/null) &
  pids+=($!)
  for _ in $(seq 600); do
    [ ! -s "$home/listening$number.json" ] || break
    read -rt 0.1 <> <(:) || :
  done
  [ -s "$home/listening$number.json" ] || { cat "$home/server$number.log" && fail "daemon $number does not listen"; }
  port=$(sed -E 's/.*"http_port":([0-9]+).*/\1/' "$home/listening$number.json")
  urls+=("http://127.0.0.1:$port/")
done
STOA_DAEMONS="${urls[*]}" STOA_DAEMON_PIDS="${pids[*]}" node "$here/test.mjs" "${urls[0]}" --cluster || status=1
exit "$status"
