#!/usr/bin/env bash
# Asks a real Hive 4.0.1 for the rows of a corpus of HiveQL, and shows where the corpus has others.
#
#   clients/hive/oracle/run.sh crates/stoa-query/tests/hiveql/queries.txt
#
# Not part of the tests: Hive and what it needs are 400 MB of jars, which Maven fetches the first time. Lines that
# differ by intention are marked with D in the corpus.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../../scripts/lib.sh"
[ $# = 1 ] || fail "give one file of a corpus"
corpus=$(realpath "$1")
need_command mvn maven || fail "maven is needed"
need_command javac default-jdk-headless || fail "a JDK is needed"

jars="$STOA_TOOLS/hive-oracle/jars"
if ! cmp -s "$here/pom.xml" "$STOA_TOOLS/hive-oracle/pom.installed"; then
  step "Fetching Hive"
  mkdir -p "$jars"
  mvn -q -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$jars" </dev/null
  cp "$here/pom.xml" "$STOA_TOOLS/hive-oracle/pom.installed"
fi

home=$(mktemp -d "${TMPDIR:-/tmp}/stoa-hive-oracle.XXXXXX")
trap 'rm -rf "$home"' EXIT
javac -cp "$jars/*" -d "$home" "$here/HiveOracle.java"
opens=()
for package in lang lang.reflect net util util.concurrent util.concurrent.atomic util.regex nio io time text; do
  opens+=("--add-opens=java.base/java.$package=ALL-UNNAMED")
done
(cd "$home" && java "${opens[@]}" -Xmx1500m -cp "$home:$jars/*" HiveOracle "$corpus" "$home/hive.txt" "$home" >"$home/log" 2>&1) ||
  { tail -n 20 "$home/log" >&2; fail "Hive did not run"; }
diff -u <(grep -v '^#' "$corpus") "$home/hive.txt" || true
