#!/usr/bin/env bash
# Runs what docs/connect-hive.md shows of beeline, and compares what it prints: beeline 3.1.3, the last one that Maven
# Central has, with the driver of its own version and with those of Hive 4, which speak newer versions of the protocol.
#
#   beeline.sh HOST PORT
set -uo pipefail
host=$1 port=$2
here=$(cd "$(dirname "$0")" && pwd)
tools=${HIVE_TOOLS:?}
jars=
for name in hive-beeline-3.1.3 jline-2.12 super-csv-2.2.0 commons-cli-1.5.0 commons-io-2.11.0 commons-lang-2.6 \
  guava-19.0 hadoop-client-api-3.3.6 hadoop-client-runtime-3.3.6; do
  if [ ! -s "$tools/$name.jar" ]; then
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  fi
  jars="$jars:$tools/$name.jar"
done

beeline() { java -cp "$tools/hive-jdbc-$driver-standalone.jar$jars" org.apache.hive.beeline.BeeLine "$@" 2>&1 </dev/null | grep -v SLF4J; }

passed=0 failed=0
# check NAME TEXT OUTPUT: whether the output has the text.
check() {
  case "$3" in
    *"$2"*) passed=$((passed + 1)) ;;
    *)
      failed=$((failed + 1))
      printf 'FAILED: %s: no "%s" in:\n%s\n' "$1" "$2" "$3"
      ;;
  esac
}

page="$here/../../docs/connect-hive.md"
url=$(sed -nE 's/^beeline -u (\S+) .*/\1/p' "$page" | head -n 1)
url=${url/127.0.0.1:10000/$host:$port}
for driver in 3.1.3 4.0.1 4.1.0; do
  said=$(beeline -u "$url" -n me -e "DROP TABLE IF EXISTS beeline_t" -e "CREATE TABLE beeline_t (a bigint, b string)" \
    -e "INSERT INTO beeline_t VALUES (1, 'it\\'s'), (2, NULL)" -e "SELECT * FROM \`beeline_t\` ORDER BY a" \
    -e "SHOW TABLES" -e "DESCRIBE beeline_t" -e '!tables' -e '!columns beeline_t' -e "DROP TABLE beeline_t")
  check "$driver: connects" "Connected to: Apache Hive (version 4.0.1-stoa" "$said"
  check "$driver: rows" "| 1  | it's  |" "$said"
  check "$driver: NULL" "| 2  | NULL  |" "$said"
  check "$driver: DESCRIBE" "| a         | bigint     |" "$said"
  check "$driver: !tables" "| default      | beeline_t" "$said"
  check "$driver: the log" "Completed executing command(queryId=" "$said"
  said=$(beeline -u "$url" -n me -e "SELECT nothing")
  check "$driver: errors" "SemanticException" "$said"
  check "$driver: codes of errors" "state=42000,code=10004" "$said"
  said=$(beeline -u "$url;transportMode=http;httpPath=cliservice" -n me --hiveconf x=7 -e "SET x")
  check "$driver: over HTTP, with a variable" "x=7" "$said"
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
