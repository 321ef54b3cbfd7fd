#!/usr/bin/env bash
# Installs what the checks with other engines need: Java (if missing), a Python environment with
# Spark, PyIceberg and DuckDB, and Iceberg's Spark runtime with the drivers of SQLite and PostgreSQL as jars.
# All of it goes to $STOA_TOOLS (default: .tools in the checkout) and is kept between runs.
#
#   setup.sh            everything
#   setup.sh --spark    the same (make demo where there is Java)
#   setup.sh --quick    PyIceberg only (make demo elsewhere)
#
# Exit status 3 means: cannot be installed here, with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

tools="$STOA_TOOLS/interop"
jars="$tools/jars"
# Versions that were seen to work together; see docs/connect-spark.md.
iceberg_runtime=org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0
sqlite_driver=org.xerial:sqlite-jdbc:3.47.1.0
postgresql_driver=org.postgresql:postgresql:42.7.8

cannot() {
  printf 'cannot install the interop tools: %s\n' "$*" >&2
  exit 3
}

mkdir -p "$tools" "$jars"

if [ "${1:-}" = --quick ]; then
  make_venv "$tools/venv-quick" "$here/requirements-quick.txt" ||
    cannot "no Python 3.10 or newer with venv, or pip could not fetch the packages"
  exit 0
fi

# Spark 4 runs on Java 17 or 21.
have java || apt_install openjdk-17-jre-headless || apt_install default-jre-headless ||
  cannot "no Java runtime found; install Java 17 or 21"

for artifact in "$iceberg_runtime" "$sqlite_driver" "$postgresql_driver"; do
  IFS=: read -r _ name version <<<"$artifact"
  [ -s "$jars/$name-$version.jar" ] && continue
  need_command mvn maven || cannot "Maven (mvn) is needed to fetch $artifact"
  note "jar: $artifact"
  mvn -B -q -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact="$artifact" -DoutputDirectory="$jars" -Dmdep.useBaseVersion=true </dev/null >&2 ||
    cannot "Maven could not fetch $artifact"
  [ -s "$jars/$name-$version.jar" ] || cannot "Maven left no $name-$version.jar in $jars"
done

make_venv "$tools/venv" "$here/requirements.txt" ||
  cannot "no Python 3.10 or newer with venv, or pip could not fetch the packages"
