#!/usr/bin/env bash
# Compiles and runs the Java of docs/connect-jdbc.md as it stands there, on a table as it names.
# Arguments: host, port, JDBC driver.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
host=$1 port=$2 driver=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/stoa-jdbc.XXXXXX")
trap 'rm -rf "$work"' EXIT

ask() { psql -X -q -At -h "$host" -p "$port" -d stoa -c "$1"; }
ask "DROP TABLE IF EXISTS ad_report"
ask "CREATE TABLE ad_report (account_id bigint, day date, impressions bigint, clicks bigint)
     PARTITIONED BY (month(day)) ORDER BY (account_id, day)"
ask "INSERT INTO ad_report VALUES (17, '2025-12-01', 100, 3), (17, '2025-12-01', 50, 1),
     (17, '2025-12-31', 7, 0), (17, '2026-01-01', 9, 9), (18, '2025-12-01', 9, 9)"
{
  printf 'import java.sql.*;\nimport java.time.LocalDate;\npublic class Page { public static void main(String[] none) throws Exception {\n'
  sed -n '/^```java$/,/^```$/p' "$here/../../docs/connect-jdbc.md" | grep -v '^```' | sed "s/127.0.0.1:5433/$host:$port/"
  printf '}}\n'
} >"$work/Page.java"
found=$(java -cp "$driver" "$work/Page.java")
ask "DROP TABLE ad_report"
expected=$'2025-12-01 150 4\n2025-12-31 7 0'
if [ "$found" = "$expected" ]; then
  echo "1 passed, 0 failed"
else
  printf 'FAILED  the Java of docs/connect-jdbc.md gave:\n%s\nnot:\n%s\n' "$found" "$expected"
  echo "0 passed, 1 failed"
  exit 1
fi
