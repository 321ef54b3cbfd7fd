#!/usr/bin/env bash
# psql against the server that PGHOST and PGPORT name: statements, \d and its kin, COPY, errors.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=clients/postgres/check.sh
. "$here/check.sh"
scratch=${STOA_SCRATCH:-$(mktemp -d)}

# q SQL…: runs statements, prints unaligned rows without headers, errors too.
q() { psql -X -A -t -q "${@/#/-c}" 2>&1; }
# meta COMMAND: runs a backslash command, errors too.
meta() { psql -X -c "$1" 2>&1; }

contains "connects and says its version" "(Stoa" "$(q 'SHOW server_version')"
check "one row" "1|a" "$(q "SELECT 1, 'a'")"
check "several statements in one string" $'1\n2' "$(q 'SELECT 1; SELECT 2')"
check "an empty statement" "" "$(q ';')"
check "NULL and empty text differ" "|t|f" "$(q "SELECT NULL, '' IS NOT NULL, '' IS NULL")"

q 'DROP TABLE IF EXISTS psql_types' >/dev/null
check "create" "" "$(q 'CREATE TABLE psql_types (id BIGINT NOT NULL, name TEXT, price DECIMAL(10,2), ok BOOLEAN, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, f DOUBLE PRECISION, b BYTEA)')"
check "insert says how many" "INSERT 0 2" "$(psql -X -A -t -c "INSERT INTO psql_types VALUES (1, 'ä\"x', 12.50, true, '2024-02-29', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56+02', 1.5, NULL), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)" 2>&1)"
check "values as text" '1|ä"x|12.50|t|2024-02-29|2024-02-29 12:34:56.789|2024-02-29 10:34:56+00|1.5' \
  "$(q 'SELECT id, name, price, ok, d, ts, tz, f FROM psql_types WHERE id = 1')"
check "the session's zone" "2024-02-29 19:34:56+09" \
  "$(q "SET TimeZone = 'Asia/Tokyo'" 'SELECT tz FROM psql_types WHERE id = 1')"

listing=$(meta '\dt')
contains '\dt lists the table' "psql_types" "$listing"
contains '\dt names the schema' "public" "$listing"
described=$(meta '\d psql_types')
contains '\d shows the title' 'Table "public.psql_types"' "$described"
contains '\d shows a decimal' "numeric(10,2)" "$described"
contains '\d shows NOT NULL' "not null" "$described"
contains '\d shows an instant' "timestamp with time zone" "$described"
contains '\d+ works' "Storage" "$(meta '\d+ psql_types')"
contains '\d lists relations' "psql_types" "$(meta '\d')"
contains '\dn lists schemas' "public" "$(meta '\dn')"
contains '\l lists the database' "stoa" "$(meta '\l')"
contains '\du lists the role' "stoa" "$(meta '\du')"
contains '\df finds functions' "List of functions" "$(meta '\df pg_catalog.ab*')"
contains '\dT finds types' "List of data types" "$(meta '\dT')"
contains '\di finds no index' 'Did not find any' "$(meta '\di')"
contains '\dv finds no view' 'Did not find any' "$(meta '\dv')"
q 'DROP VIEW IF EXISTS psql_view' "CREATE VIEW psql_view (who, cost) COMMENT 'what it costs' AS SELECT id, price FROM psql_types" >/dev/null
contains '\dv lists the view' "psql_view | view" "$(meta '\dv')"
contains '\d shows a view' 'View "public.psql_view"' "$(meta '\d psql_view')"
contains '\d+ shows its query' "SELECT id, price FROM psql_types;" "$(meta '\d+ psql_view')"
contains '\dv+ shows its comment' "what it costs" "$(meta '\dv+')"
contains '\sv shows its query' "SELECT id, price FROM psql_types" "$(meta '\sv psql_view')"
check "\\dt leaves views out" "0" "$(meta '\dt' | grep -c psql_view)"
check "a view is read" "1|12.50" "$(q 'SELECT who, cost FROM psql_view WHERE who = 1')"
contains "a view is not copied" "is a view" "$(q 'COPY psql_view FROM STDIN' </dev/null)"
q 'DROP VIEW psql_view' >/dev/null
contains '\d of nothing' 'Did not find any relation named "nothing"' "$(meta '\d nothing')"
contains '\dt with a pattern' "psql_types" "$(meta '\dt public.psql_*')"
contains '\conninfo' 'database "stoa"' "$(meta '\conninfo')"
contains '\timing' "Time: " "$(psql -X -c '\timing on' -c 'SELECT 1' 2>&1)"
contains '\gdesc' "bigint" "$(printf 'SELECT id FROM psql_types \\gdesc\n' | psql -X 2>&1)"
check '\gset' "5" "$(printf 'SELECT 5 AS five \\gset\n\\echo :five\n' | psql -X 2>&1)"
check 'FETCH_COUNT' "1000" "$(printf '\\set FETCH_COUNT 100\nSELECT value FROM generate_series(1, 1000) AS s(value) ORDER BY value;\n' | psql -X -A -t 2>&1 | wc -l | tr -d ' ')"

printf '10\tten\n11\t\\N\n' >"$scratch/rows.tsv"
printf 'id,name\n20,"a,b"\n21,\n' >"$scratch/rows.csv"
q 'DROP TABLE IF EXISTS psql_copy' 'CREATE TABLE psql_copy (id INT, name TEXT)' >/dev/null
check '\copy from text' "COPY 2" "$(meta "\\copy psql_copy FROM '$scratch/rows.tsv'")"
check '\copy from CSV' "COPY 2" "$(meta "\\copy psql_copy FROM '$scratch/rows.csv' WITH (FORMAT csv, HEADER true)")"
check "COPY FROM STDIN" "COPY 1" "$(printf '30\tthirty\n' | psql -X -c 'COPY psql_copy FROM STDIN' 2>&1)"
check "rows copied" $'10|ten\n11|NULL\n20|a,b\n21|NULL\n30|thirty' \
  "$(q "SELECT id, coalesce(name, 'NULL') FROM psql_copy ORDER BY id")"
bad=$(printf '40\tforty\nx\tbad\n' | psql -X -c 'COPY psql_copy FROM STDIN' 2>&1)
contains "a bad line is an error" "ERROR" "$bad"
contains "a bad line names its value" "x" "$bad"
check "a failed COPY leaves nothing" "5" "$(q 'SELECT count(*) FROM psql_copy')"
check "COPY TO STDOUT as text" $'10\tten\n11\t\\N' \
  "$(q 'COPY (SELECT id, name FROM psql_copy WHERE id < 20 ORDER BY id) TO STDOUT')"
check "COPY TO STDOUT as CSV" $'id,name\n20,"a,b"\n21,' \
  "$(q 'COPY (SELECT id, name FROM psql_copy WHERE id BETWEEN 20 AND 29 ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER true)')"
meta "\\copy psql_copy TO '$scratch/out.csv' WITH (FORMAT csv)" >/dev/null
check '\copy to a file' "5" "$(wc -l <"$scratch/out.csv" | tr -d ' ')"

contains "a syntax error points at its place" "LINE 1" "$(q 'SELEC 1')"
contains "an unknown table" 'nothing' "$(q 'SELECT * FROM nothing')"
check "an error's SQLSTATE" "42P01" "$(psql -X -v VERBOSITY=sqlstate -c 'SELECT * FROM nothing' 2>&1 | sed -E 's/^ERROR:  //')"
check "a block that failed" "25P02" \
  "$(printf 'BEGIN;\nSELECT * FROM nothing;\nSELECT 1;\nROLLBACK;\n' | psql -X -q -v VERBOSITY=sqlstate 2>&1 | sed -nE 's/^ERROR:  (25P02)$/\1/p')"
check "a block sees its own write, and a rollback undoes it" $'1\n0' \
  "$(q 'BEGIN' "INSERT INTO psql_copy VALUES (50, NULL)" 'SELECT count(*) FROM psql_copy WHERE id = 50' 'ROLLBACK' 'SELECT count(*) FROM psql_copy WHERE id = 50')"
contains "an unknown database" 'database "sales" does not exist' "$(PGDATABASE=sales q 'SELECT 1')"
check "a cursor" $'1\n2\n3' \
  "$(q 'BEGIN' 'DECLARE c CURSOR FOR SELECT value FROM generate_series(1, 10) AS s(value) ORDER BY value' 'FETCH 2 FROM c' 'FETCH c' 'COMMIT')"
check "PREPARE and EXECUTE" "42" "$(q 'PREPARE p (int) AS SELECT $1 + 1' 'EXECUTE p(41)')"
contains "statement_timeout" "statement timeout" \
  "$(q 'SET statement_timeout = 50' 'SELECT count(*) FROM generate_series(1, 1000000000000) AS s(value) WHERE value % 7 = 8')"

q 'DROP TABLE psql_types, psql_copy' >/dev/null
finish_checks
