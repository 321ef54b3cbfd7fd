#!/usr/bin/env bash
# Compiles and runs the Java of docs/connect-hive.md as it stands there, on a table as it names.
# Arguments: host, port, Hive's JDBC driver.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
host=$1 port=$2 driver=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/stoa-hive-jdbc.XXXXXX")
trap 'rm -rf "$work"' EXIT
{
  cat <<'JAVA'
import java.sql.*;
public class Page { public static void main(String[] none) throws Exception {
try (Connection c = DriverManager.getConnection("jdbc:hive2://127.0.0.1:10000/default"); Statement s = c.createStatement()) {
  s.execute("DROP TABLE IF EXISTS ad_report");
  s.execute("CREATE TABLE ad_report (account_id bigint, day date, impressions bigint)");
  s.execute("INSERT INTO ad_report VALUES (17, '2025-12-01', 100), (17, '2025-12-01', 50), (17, '2025-12-31', 7), (18, '2025-12-01', 9)");
}
JAVA
  sed -n '/^```java$/,/^```$/p' "$here/../../docs/connect-hive.md" | grep -v '^```'
  cat <<'JAVA'
try (Connection c = DriverManager.getConnection("jdbc:hive2://127.0.0.1:10000/default"); Statement s = c.createStatement()) {
  s.execute("DROP TABLE ad_report");
}
}}
JAVA
} | sed "s/127.0.0.1:10000/$host:$port/" >"$work/Page.java"
found=$(java -cp "$driver" "$work/Page.java" 2>"$work/log") || cat "$work/log"
expected=$'2025-12-01 150\n2025-12-31 7'
if [ "$found" = "$expected" ]; then
  echo "1 passed, 0 failed"
else
  printf 'FAILED  the Java of docs/connect-hive.md gave:\n%s\nnot:\n%s\n' "$found" "$expected"
  echo "0 passed, 1 failed"
  exit 1
fi
