#!/usr/bin/env bash
# Installs what the checks with Hive's clients need: a Python environment with PyHive, impyla and SQLAlchemy, a JDK, Hive's
# JDBC driver in three versions, and beeline. What is not a system package goes to $STOA_TOOLS.
#
# Exit status 3 means: cannot be installed here, with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

tools="$STOA_TOOLS/hive"
drivers="org.apache.hive:hive-jdbc:3.1.3:jar:standalone org.apache.hive:hive-jdbc:4.0.1:jar:standalone
  org.apache.hive:hive-jdbc:4.1.0:jar:standalone"
# beeline, and what it needs beside the driver.
beeline="org.apache.hive:hive-beeline:3.1.3 jline:jline:2.12 net.sf.supercsv:super-csv:2.2.0
  commons-cli:commons-cli:1.5.0 commons-io:commons-io:2.11.0 commons-lang:commons-lang:2.6
  com.google.guava:guava:19.0 org.apache.hadoop:hadoop-client-api:3.3.6
  org.apache.hadoop:hadoop-client-runtime:3.3.6"

cannot() {
  printf 'cannot install the clients of Hive: %s\n' "$*" >&2
  exit 3
}

mkdir -p "$tools"
need_command javac default-jdk-headless || cannot "a JDK is needed (package default-jdk-headless)"

# jar ARTIFACT: fetches a jar unless it is there.
jar() {
  local name version classifier
  IFS=: read -r _ name version _ classifier <<<"$1"
  [ -s "$tools/$name-$version${classifier:+-$classifier}.jar" ] && return 0
  need_command mvn maven || cannot "Maven (mvn) is needed to fetch $1"
  note "jar: $1"
  mvn -B -q -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact="$1" -DoutputDirectory="$tools" -Dmdep.useBaseVersion=true </dev/null >&2
}

for artifact in $drivers; do
  jar "$artifact" || cannot "Maven could not fetch $artifact"
done
for artifact in $beeline; do
  # Without it, its checks are skipped.
  jar "$artifact" || note "no $artifact: beeline is left out"
done

make_venv "$tools/venv" "$here/requirements.txt" ||
  cannot "no Python 3.10 or newer with venv, or pip could not fetch the packages"
