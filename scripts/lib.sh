# Shared by the scripts of this project; sourced, not run.
#
# Says what is being done and how long it took, finds tools, installs what is missing where that is
# possible, and starts a Stoa server on free ports. Nothing here knows a machine path or a registry:
# packages come through the ordinary clients (apt-get, pip, mvn, cargo) as they are set up.
# shellcheck shell=bash

# shellcheck disable=SC2034 # used by the scripts that source this
STOA_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Build results and tools live outside the checkout, so that checkouts and CI runs share them.
STOA_CACHE="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/stoa"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$STOA_CACHE/target}

# Python environments, jars and the like, which no build needs, only the checks with other engines.
export STOA_TOOLS=${STOA_TOOLS:-$STOA_CACHE/tools}
case "$STOA_TOOLS" in /*) ;; *) STOA_TOOLS="$PWD/$STOA_TOOLS" ;; esac

if [ -t 1 ]; then
  BOLD=$(printf '\033[1m') DIM=$(printf '\033[2m') RED=$(printf '\033[31m') PLAIN=$(printf '\033[0m')
else
  BOLD='' DIM='' RED='' PLAIN=''
fi

# step TEXT: announces the next piece of work.
step() { printf '\n%s==> %s%s\n' "$BOLD" "$*" "$PLAIN"; }
# note TEXT: a detail below a step.
note() { printf '%s    %s%s\n' "$DIM" "$*" "$PLAIN"; }
# fail TEXT: says what is wrong and ends the script.
fail() {
  printf '%serror:%s %s\n' "$RED" "$PLAIN" "$*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# now_ms: milliseconds since the epoch.
now_ms() { date +%s%3N; }

# seconds_since START_MS: prints the time since then as "12.3 s".
seconds_since() {
  local took=$(($(now_ms) - $1))
  printf '%d.%d s' $((took / 1000)) $((took % 1000 / 100))
}

# can_install: whether apt-get can install packages here without asking anybody.
can_install() { have apt-get && [ "$(id -u)" = 0 ]; }

APT_UPDATED=
# apt_install PACKAGE…: installs system packages, or returns 1 where that is not possible.
apt_install() {
  can_install || return 1
  if [ -z "$APT_UPDATED" ]; then
    note "apt-get update"
    apt-get update -qq >/dev/null 2>&1 || note "apt-get update failed; going on with the lists that are here"
    APT_UPDATED=1
  fi
  note "apt-get install $*"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "$@" >/dev/null 2>&1 </dev/null
}

# need_command COMMAND PACKAGE…: makes sure that COMMAND is here, installing PACKAGE… if need be.
need_command() {
  local command=$1
  shift
  have "$command" && return 0
  apt_install "$@" && have "$command"
}

# postgresql_bin: prints the folder of the newest PostgreSQL server here; Debian keeps it off the PATH.
postgresql_bin() {
  local initdb
  initdb=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb | grep -v '\*' | sort -V | tail -n 1)
  [ -n "$initdb" ] || initdb=$(command -v initdb) || return 1
  dirname "$initdb"
}

# free_port: prints a port that nobody uses at the moment.
free_port() {
  local port
  for port in $(shuf -i 20000-32000 -n 50); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { printf '%s\n' "$port"; return; }
  done
}

# as_postgres HOME COMMAND…: runs a command as somebody who may run PostgreSQL, which root may not.
as_postgres() {
  local home=$1 owner=()
  shift
  [ "$(id -u)" != 0 ] || owner=(setpriv --reuid=postgres "--regid=$(id -g postgres)" --clear-groups)
  (cd / && "${owner[@]}" env HOME="$home" "$@" </dev/null)
}

# begin_postgres HOME: starts a new PostgreSQL on a free port, with a superuser and a database `stoa`, in HOME, which
# is made; sets POSTGRES_URL. Others must be able to pass through the folder that HOME is in.
begin_postgres() {
  local home=$1 bin port
  bin=$(postgresql_bin) || { apt_install postgresql && bin=$(postgresql_bin); } || fail "initdb is needed (package postgresql)"
  port=$(free_port)
  mkdir -p "$home"
  [ "$(id -u)" != 0 ] || chown postgres "$home"
  as_postgres "$home" "$bin/initdb" -D "$home/data" -U stoa -A trust -E UTF8 --no-sync >/dev/null
  as_postgres "$home" "$bin/pg_ctl" -D "$home/data" -w -s -l "$home/log" \
    -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=''" start
  as_postgres "$home" "$bin/createdb" -h 127.0.0.1 -p "$port" -U stoa stoa
  # shellcheck disable=SC2034 # used by the scripts that source this
  POSTGRES_URL="postgres://stoa@127.0.0.1:$port/stoa"
}

# end_postgres HOME: ends it, if it runs.
end_postgres() {
  [ ! -f "$1/data/postmaster.pid" ] || as_postgres "$1" "$(postgresql_bin)/pg_ctl" -D "$1/data" -m fast -s stop || true
}

# need_rust: cargo and a C compiler, which everything needs.
need_rust() {
  have cargo || fail "cargo is not on the PATH; install Rust with rustup (https://rustup.rs) and try again"
  have cc || have gcc || have clang || apt_install build-essential ||
    fail "no C compiler found; install one (on Debian and Ubuntu: apt-get install build-essential)"
}

# python_here: prints the Python 3 with venv to use, installing one if that is possible.
python_here() {
  local python
  for python in "${PYTHON:-}" python3 python; do
    [ -n "$python" ] || continue
    if have "$python" && "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      printf '%s\n' "$python"
      return 0
    fi
  done
  apt_install python3 python3-venv >&2 && printf 'python3\n'
}

# make_venv DIR REQUIREMENTS_FILE: a virtual environment with exactly these requirements; quick if
# it is already there. Prints progress, returns 1 if it cannot be had.
make_venv() {
  local dir=$1 requirements=$2 python
  if [ -x "$dir/bin/python" ] && cmp -s "$requirements" "$dir/requirements.installed"; then
    return 0
  fi
  python=$(python_here) || return 1
  note "Python environment: $(paste -sd' ' <(grep -v '^#' "$requirements"))"
  [ -x "$dir/bin/python" ] || "$python" -m venv "$dir" || return 1
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" </dev/null || return 1
  cp "$requirements" "$dir/requirements.installed"
}

# json_field KEY: reads one line of JSON from stdin and prints a top-level number or text of it.
json_field() { sed -nE "s/.*\"$1\"[[:space:]]*:[[:space:]]*\"?([^\",}]*)\"?.*/\1/p" | head -n 1; }

# port_or_zero PORT: prints PORT if nobody listens on it, else 0 (the server then takes a free one).
port_or_zero() {
  if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then echo 0; else echo "$1"; fi
}

# start_server STOA_BINARY WAREHOUSE LOG [HTTP_PORT PG_PORT FLIGHT_PORT]: starts a server, on free ports unless
# told otherwise, and waits until it listens. Sets SERVER_PID, SERVER_HTTP_PORT, SERVER_PG_PORT,
# SERVER_FLIGHT_PORT and SERVER_HIVE_PORT;
# returns 1 if it does not come up.
start_server() {
  local stoa=$1 warehouse=$2 log=$3 http_port=${4:-0} pg_port=${5:-0} flight_port=${6:-0} line='' tries=0
  "$stoa" server --warehouse "$warehouse" --http-port "$http_port" --pg-port "$pg_port" \
    --flight-port "$flight_port" --hive-port 0 >"$log.out" 2>"$log" </dev/null &
  SERVER_PID=$!
  while [ $tries -lt 300 ]; do
    line=$(grep -m1 '^{' "$log.out" 2>/dev/null) && [ -n "$line" ] && break
    kill -0 "$SERVER_PID" 2>/dev/null || break
    tries=$((tries + 1))
    sleep 0.1
  done
  if [ -z "$line" ]; then
    tail -n 30 "$log" >&2
    return 1
  fi
  SERVER_HTTP_PORT=$(printf '%s' "$line" | json_field http_port)
  SERVER_PG_PORT=$(printf '%s' "$line" | json_field pg_port)
  SERVER_FLIGHT_PORT=$(printf '%s' "$line" | json_field flight_port)
  SERVER_HIVE_PORT=$(printf '%s' "$line" | json_field hive_port)
  [ -n "$SERVER_HTTP_PORT" ] && [ -n "$SERVER_PG_PORT" ] && [ -n "$SERVER_FLIGHT_PORT" ] &&
    [ -n "$SERVER_HIVE_PORT" ]
}

# stop_server: asks the server started by start_server to finish, and waits for it.
stop_server() {
  [ -n "${SERVER_PID:-}" ] || return 0
  kill -TERM "$SERVER_PID" 2>/dev/null
  wait "$SERVER_PID" 2>/dev/null
  local status=$?
  SERVER_PID=
  return $status
}
