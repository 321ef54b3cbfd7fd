#!/usr/bin/env bash
# Installs what the checks with PostgreSQL's clients need: psql and pgbench, Python environments
# with psycopg and others, a JDK and the JDBC driver. What is not a system package goes to $STOA_TOOLS.
#
# Exit status 3 means: cannot be installed here, with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

tools="$STOA_TOOLS/postgres"
# The driver that connection pools and BI tools of today ship.
driver=org.postgresql:postgresql:42.7.8

cannot() {
  printf 'cannot install the PostgreSQL clients: %s\n' "$*" >&2
  exit 3
}

mkdir -p "$tools"
need_command openssl openssl || cannot "openssl is needed (package openssl)"
need_command psql postgresql-client || cannot "psql is needed (package postgresql-client)"
# pgbench comes with the server's package; depending on the release under one of two names.
need_command pgbench postgresql-contrib || need_command pgbench postgresql ||
  cannot "pgbench is needed (package postgresql-contrib or postgresql)"
need_command javac default-jdk-headless || cannot "a JDK is needed (package default-jdk-headless)"

# Without these, their tests are skipped.
need_command go golang-go || note "no Go: its drivers are left out"
need_command pgbouncer pgbouncer || [ -x /usr/sbin/pgbouncer ] || note "no pgbouncer: it is left out"
if ! compgen -G '/usr/lib/*/odbc/psqlodbcw.so' >/dev/null; then
  apt_install odbc-postgresql unixodbc || note "no psqlodbc: it is left out"
fi
if need_command node nodejs npm && { have npm || apt_install npm; }; then
  if ! cmp -s "$here/node/package-lock.json" "$tools/node/package-lock.json"; then
    note "npm ci: Node's drivers"
    mkdir -p "$tools/node"
    cp "$here/node/package.json" "$here/node/package-lock.json" "$here/node/.npmrc" "$tools/node/"
    (cd "$tools/node" && npm ci --silent --no-audit --no-fund >/dev/null) || rm -rf "$tools/node"
  fi
else
  note "no Node: its drivers are left out"
fi

IFS=: read -r _ name version <<<"$driver"
if [ ! -s "$tools/$name-$version.jar" ]; then
  need_command mvn maven || cannot "Maven (mvn) is needed to fetch $driver"
  note "jar: $driver"
  mvn -B -q -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact="$driver" -DoutputDirectory="$tools" -Dmdep.useBaseVersion=true </dev/null >&2 ||
    cannot "Maven could not fetch $driver"
fi
ln -sf "$name-$version.jar" "$tools/postgresql.jar"

make_venv "$tools/venv" "$here/requirements.txt" ||
  cannot "no Python 3.10 or newer with venv, or pip could not fetch the packages"
# dbt and ibis want other versions of what they share.
make_venv "$tools/models" "$here/models/requirements.txt" ||
  cannot "pip could not fetch dbt and ibis"
