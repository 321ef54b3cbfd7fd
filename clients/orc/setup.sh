#!/usr/bin/env bash
# Installs what the second opinion on ORC needs: the Python environment of the interop suite (with
# pyarrow, Spark and pytest), a JDK, and ORC Java's command line tools as one jar.
#
# Exit status 3 means: cannot be installed here, with the reason on stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../scripts/lib.sh"

tools="$STOA_TOOLS/orc"
# The last line of releases that has the tools with all they need in one jar.
orc_tools=org.apache.orc:orc-tools:1.9.6:jar:uber

cannot() {
  printf 'cannot install the ORC tools: %s\n' "$*" >&2
  exit 3
}

"$here/../interop/setup.sh"
# `java File.java` needs the compiler.
need_command javac default-jdk-headless || cannot "a JDK is needed (package default-jdk-headless)"

mkdir -p "$tools"
if [ ! -s "$tools/orc-tools.jar" ]; then
  need_command mvn maven || cannot "Maven (mvn) is needed to fetch $orc_tools"
  note "jar: $orc_tools"
  mvn -B -q -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact="$orc_tools" -DoutputDirectory="$tools/fetched" -Dmdep.useBaseVersion=true </dev/null >&2 ||
    cannot "Maven could not fetch $orc_tools"
  mv "$tools/fetched"/orc-tools-*.jar "$tools/orc-tools.jar"
  rmdir "$tools/fetched"
fi
