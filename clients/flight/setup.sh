#!/usr/bin/env bash
# Installs what the checks with Flight SQL's clients need: a Python environment with ADBC's driver
# and pyarrow, a JDK and the Flight SQL JDBC driver. What is not a system package goes to
# $STOA_TOOLS.
#
# Exit status 3 means: cannot be installed here, with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

tools="$STOA_TOOLS/flight"
driver=org.apache.arrow:flight-sql-jdbc-driver:18.3.0

cannot() {
  printf 'cannot install the Flight SQL clients: %s\n' "$*" >&2
  exit 3
}

mkdir -p "$tools"
need_command openssl openssl || cannot "openssl is needed (package openssl)"
need_command javac default-jdk-headless || cannot "a JDK is needed (package default-jdk-headless)"

IFS=: read -r _ name version <<<"$driver"
if [ ! -s "$tools/$name-$version.jar" ]; then
  need_command mvn maven || cannot "Maven (mvn) is needed to fetch $driver"
  note "jar: $driver"
  mvn -B -q -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact="$driver" -DoutputDirectory="$tools" -Dmdep.useBaseVersion=true </dev/null >&2 ||
    cannot "Maven could not fetch $driver"
fi
ln -sf "$name-$version.jar" "$tools/flight-sql-jdbc.jar"

make_venv "$tools/venv" "$here/requirements.txt" ||
  cannot "no Python 3.10 or newer with venv, or pip could not fetch the packages"
