// lib/pq behind database/sql: prepared statements, values, COPY, transactions, errors.
package drivers

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lib/pq"
)

func open(t *testing.T, more string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", address()+more)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func sqlTable(t *testing.T, db *sql.DB, columns string) string {
	t.Helper()
	name := fmt.Sprintf("t_%d", time.Now().UnixNano())
	_, err := db.Exec(fmt.Sprintf("CREATE TABLE %s (%s)", name, columns))
	must(t, err)
	t.Cleanup(func() { db.Exec("DROP TABLE " + name) })
	return name
}

func TestLibPqValues(t *testing.T) {
	for _, more := range []string{"", " binary_parameters=yes"} {
		t.Run("with"+more, func(t *testing.T) {
			db := open(t, more)
			name := sqlTable(t, db, "l bigint, d double precision, t text, b boolean, day date, at timestamptz, raw bytea, names text[]")
			insert, err := db.Prepare(fmt.Sprintf("INSERT INTO %s VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", name))
			must(t, err)
			at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
			_, err = insert.Exec(int64(1)<<40, 0.5, "it's", true, "2026-01-02", at, []byte{0, 255}, pq.Array([]string{"a", "b c"}))
			must(t, err)
			_, err = insert.Exec(nil, nil, nil, nil, nil, nil, nil, nil)
			must(t, err)
			var l sql.NullInt64
			var d float64
			var text string
			var yes bool
			var day, seen time.Time
			var raw []byte
			var names []string
			found := db.QueryRow("SELECT * FROM "+name+" WHERE l = $1", int64(1)<<40)
			must(t, found.Scan(&l, &d, &text, &yes, &day, &seen, &raw, pq.Array(&names)))
			if l.Int64 != 1<<40 || d != 0.5 || text != "it's" || !yes || day.Day() != 2 || !seen.Equal(at) || raw[1] != 255 || names[1] != "b c" {
				t.Fatal(l, d, text, yes, day, seen, raw, names)
			}
			must(t, db.QueryRow("SELECT l FROM "+name+" WHERE l IS NULL").Scan(&l))
			if l.Valid {
				t.Fatal(l)
			}
		})
	}
}

func TestLibPqCopyIn(t *testing.T) {
	db := open(t, "")
	name := sqlTable(t, db, "n bigint, t text")
	tx, err := db.Begin()
	must(t, err)
	copy, err := tx.Prepare(pq.CopyIn(name, "n", "t"))
	must(t, err)
	for n := range 1000 {
		_, err = copy.Exec(n, "tab\tand\nline")
		must(t, err)
	}
	_, err = copy.Exec()
	must(t, err)
	must(t, copy.Close())
	must(t, tx.Commit())
	var rows, same int
	must(t, db.QueryRow("SELECT count(*), count(CASE WHEN t = E'tab\\tand\\nline' THEN 1 END) FROM "+name).Scan(&rows, &same))
	if rows != 1000 || same != 1000 {
		t.Fatal(rows, same)
	}
}

func TestLibPqErrorsAndTransactions(t *testing.T) {
	db := open(t, "")
	name := sqlTable(t, db, "n bigint NOT NULL")
	_, err := db.Exec("INSERT INTO "+name+" VALUES ($1)", nil)
	var found *pq.Error
	if !errors.As(err, &found) || found.Code.Name() != "not_null_violation" {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	must(t, err)
	_, err = tx.Exec("SELECT n / 0 FROM " + name + "; SELECT 1 / 0")
	if !errors.As(err, &found) || found.Code != "22012" {
		t.Fatal(err)
	}
	_, err = tx.Exec("SELECT 1")
	if !errors.As(err, &found) || found.Code != "25P02" {
		t.Fatal(err)
	}
	must(t, tx.Rollback())
	types, err := db.Query("SELECT n, n::text AS t FROM " + name)
	must(t, err)
	defer types.Close()
	columns, err := types.ColumnTypes()
	must(t, err)
	if columns[0].DatabaseTypeName() != "INT8" || columns[1].DatabaseTypeName() != "TEXT" {
		t.Fatal(columns[0].DatabaseTypeName(), columns[1].DatabaseTypeName())
	}
}
