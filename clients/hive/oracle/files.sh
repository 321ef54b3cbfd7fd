#!/usr/bin/env bash
# Compares external tables with a real Hive 4.0.1, both ways: Hive writes and reads the files of the corpus in
# crates/stoa-query/tests/hiveql/external.txt, then it reads files that Stoa has written. Shows where rows differ.
#
#   clients/hive/oracle/files.sh BINARY [FOLDER]
#
# With FOLDER, Hive's files are copied there. Not part of the tests, as run.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib.sh
. "$here/../../../scripts/lib.sh"
[ $# -ge 1 ] || fail "give the binary of Stoa"
stoa=$(realpath "$1")
tests="$here/../../../crates/stoa-query/tests/hiveql"
jars="$STOA_TOOLS/hive-oracle/jars"
[ -d "$jars" ] || fail "run clients/hive/oracle/run.sh first: it fetches Hive"

home=$(mktemp -d "${TMPDIR:-/tmp}/stoa-hive-files.XXXXXX")
trap 'rm -rf "$home"' EXIT
mkdir "$home/hive" "$home/stoa"
for side in hive stoa; do
  cp -r "$tests/files/external/raw" "$tests/files/external/escaped" "$home/$side"
done
javac -cp "$jars/*" -d "$home" "$here/HiveOracle.java"
opens=()
for package in lang lang.reflect net util util.concurrent util.concurrent.atomic util.regex nio io time text; do
  opens+=("--add-opens=java.base/java.$package=ALL-UNNAMED")
done

# statements SIDE MARKS: the lines of the corpus with these marks, as statements on a side's files.
statements() {
  grep "^[$2] " "$tests/external.txt" | sed "s/^[SWM] /Q /; s|@DIR@|$home/$1|g"
}

# ask NAME: has Hive run NAME.txt; its rows come to NAME.rows.
ask() {
  (cd "$home" && TZ=UTC java "${opens[@]}" -Duser.timezone=UTC -Xmx1500m -cp "$home:$jars/*" HiveOracle "$home/$1.txt" "$home/$1.rows" "$home/db-$1" >"$home/log" 2>&1) ||
    { tail -n 20 "$home/log" >&2; fail "Hive did not run"; }
}

step "Hive writes and reads"
statements hive SWQ >"$home/writes.txt"
ask writes
[ $# -lt 2 ] || { mkdir -p "$2" && cp -r "$home/hive/." "$2" && find "$2" -name '.*.crc' -delete; }
# As the corpus has it.
sed "s|$home/hive|@DIR@|g" "$home/writes.rows" >"$home/hive.txt"
grep -v '^[#DHM]' "$tests/external.txt" | sed 's/^[SW] /Q /' | diff -u - "$home/hive.txt" || true

step "Stoa writes, Hive reads"
{
  echo "SET dialect = hive;"
  statements stoa WQ | sed 's/^Q //; s/$/;/' | grep -v '^select'
} >"$home/stoa.sql"
"$stoa" sql --warehouse "$home/warehouse" -f "$home/stoa.sql" >"$home/stoa.log" 2>&1 ||
  { cat "$home/stoa.log" >&2; fail "Stoa did not run"; }
statements stoa SMQ >"$home/reads.txt"
ask reads
sed "s|$home/stoa|@DIR@|g" "$home/reads.rows" >"$home/stoa.txt"
grep -v '^[#DHW]' "$tests/external.txt" | sed 's/^[SM] /Q /' | diff -u - "$home/stoa.txt" || true
