// pgx: every query mode, values of all types both ways, COPY in binary, batches, cursors, cancelling.
package drivers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

var ctx = context.Background()

func address() string {
	host, port := os.Getenv("PGHOST"), os.Getenv("PGPORT")
	return fmt.Sprintf("host=%s port=%s user=stoa dbname=stoa sslmode=disable", host, port)
}

func connect(t *testing.T, mode pgx.QueryExecMode) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(address())
	must(t, err)
	config.DefaultQueryExecMode = mode
	conn, err := pgx.ConnectConfig(ctx, config)
	must(t, err)
	t.Cleanup(func() { conn.Close(ctx) })
	return conn
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// table makes a table that goes with the test.
func table(t *testing.T, conn *pgx.Conn, columns string) string {
	t.Helper()
	name := fmt.Sprintf("t_%d", time.Now().UnixNano())
	_, err := conn.Exec(ctx, fmt.Sprintf("CREATE TABLE %s (%s)", name, columns), pgx.QueryExecModeExec)
	must(t, err)
	t.Cleanup(func() { conn.Exec(ctx, "DROP TABLE "+name, pgx.QueryExecModeExec) })
	return name
}

var modes = map[string]pgx.QueryExecMode{
	"cache statement": pgx.QueryExecModeCacheStatement,
	"cache describe":  pgx.QueryExecModeCacheDescribe,
	"describe exec":   pgx.QueryExecModeDescribeExec,
	"exec":            pgx.QueryExecModeExec,
	"simple protocol": pgx.QueryExecModeSimpleProtocol,
}

type row struct {
	L    int64
	I    int32
	D    float64
	T    string
	B    bool
	Day  time.Time
	At   time.Time
	Seen time.Time
	Raw  []byte
}

const columns = "l bigint, i int, d double precision, t text, b boolean, day date, at timestamp, seen timestamptz, raw bytea"

func rowNumber(n int) row {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	return row{int64(n) << 40, int32(n), 0.5, "it's \\ ü", n%2 == 0, day, at, at, []byte{0, 255, byte(n)}}
}

func (r row) values() []any {
	return []any{r.L, r.I, r.D, r.T, r.B, r.Day, r.At, r.Seen, r.Raw}
}

func TestEveryQueryModeWritesAndReads(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, mode)
			table := table(t, conn, columns)
			insert := fmt.Sprintf("INSERT INTO %s VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", table)
			want := []row{}
			for n := range 3 {
				want = append(want, rowNumber(n))
				tag, err := conn.Exec(ctx, insert, want[n].values()...)
				must(t, err)
				if tag.String() != "INSERT 0 1" {
					t.Fatalf("tag %q", tag)
				}
			}
			rows, err := conn.Query(ctx, fmt.Sprintf("SELECT * FROM %s WHERE i >= $1 AND t = $2 ORDER BY i", table), 0, "it's \\ ü")
			must(t, err)
			got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
			must(t, err)
			for n := range got {
				got[n].Seen = got[n].Seen.UTC()
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got  %v\nwant %v", got, want)
			}
		})
	}
}

func TestCopyFromAndNulls(t *testing.T) {
	conn := connect(t, pgx.QueryExecModeCacheStatement)
	table := table(t, conn, columns+", n numeric(12, 2), names text[]")
	rows := [][]any{}
	for n := range 1000 {
		rows = append(rows, append(rowNumber(n).values(), pgtype.Numeric{Int: nil, Valid: false}, []string{"a, b", "{}"}))
	}
	rows[7] = make([]any, len(rows[7]))
	names := []string{"l", "i", "d", "t", "b", "day", "at", "seen", "raw", "n", "names"}
	copied, err := conn.CopyFrom(ctx, pgx.Identifier{table}, names, pgx.CopyFromRows(rows))
	must(t, err)
	var all, filled int
	var list []string
	must(t, conn.QueryRow(ctx, fmt.Sprintf("SELECT count(*), count(l) FROM %s", table)).Scan(&all, &filled))
	must(t, conn.QueryRow(ctx, fmt.Sprintf("SELECT names FROM %s WHERE i = 3", table)).Scan(&list))
	if copied != 1000 || all != 1000 || filled != 999 || !reflect.DeepEqual(list, []string{"a, b", "{}"}) {
		t.Fatal(copied, all, filled, list)
	}
	var empty *int64
	must(t, conn.QueryRow(ctx, fmt.Sprintf("SELECT l FROM %s WHERE i IS NULL", table)).Scan(&empty))
	if empty != nil {
		t.Fatal(*empty)
	}
	// A row that does not fit leaves nothing.
	_, err = conn.CopyFrom(ctx, pgx.Identifier{table}, []string{"l"}, pgx.CopyFromRows([][]any{{int64(1)}, {"x"}}))
	if err == nil {
		t.Fatal("a text went into a bigint")
	}
	must(t, conn.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s", table)).Scan(&all))
	if all != 1000 {
		t.Fatal(all)
	}
}

func TestBatchesAndTransactions(t *testing.T) {
	conn := connect(t, pgx.QueryExecModeCacheStatement)
	table := table(t, conn, "n bigint")
	tx, err := conn.Begin(ctx)
	must(t, err)
	batch := &pgx.Batch{}
	for n := range 50 {
		batch.Queue(fmt.Sprintf("INSERT INTO %s VALUES ($1)", table), n)
	}
	total := 0
	batch.Queue(fmt.Sprintf("SELECT sum(n)::bigint FROM %s", table)).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
	must(t, tx.SendBatch(ctx, batch).Close())
	if total != 49*50/2 {
		t.Fatal(total)
	}
	must(t, tx.Rollback(ctx))
	must(t, conn.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s", table)).Scan(&total))
	if total != 0 {
		t.Fatal(total)
	}
	// The first error of a batch ends it.
	batch = &pgx.Batch{}
	batch.Queue("SELECT 1")
	batch.Queue("SELECT 1 / 0")
	batch.Queue(fmt.Sprintf("INSERT INTO %s VALUES (1)", table))
	results := conn.SendBatch(ctx, batch)
	var one int
	must(t, results.QueryRow().Scan(&one))
	checkCode(t, results.QueryRow().Scan(&one), "22012")
	results.Close()
	must(t, conn.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s", table)).Scan(&total))
	if total != 0 {
		t.Fatal(total)
	}
	// A transaction within a transaction is a savepoint.
	must(t, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s VALUES (1)", table)); err != nil {
			return err
		}
		pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
			_, err := inner.Exec(ctx, "SELECT nothing")
			return err
		})
		_, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s VALUES (2)", table))
		return err
	}))
	must(t, conn.QueryRow(ctx, fmt.Sprintf("SELECT sum(n)::bigint FROM %s", table)).Scan(&total))
	if total != 3 {
		t.Fatal(total)
	}
}

func checkCode(t *testing.T, err error, code string) {
	t.Helper()
	var found *pgconn.PgError
	if !errors.As(err, &found) || found.Code != code {
		t.Fatalf("%v, want %s", err, code)
	}
}

func TestErrorsCarryCodeAndPosition(t *testing.T) {
	conn := connect(t, pgx.QueryExecModeCacheStatement)
	table := table(t, conn, "name text")
	_, err := conn.Exec(ctx, "SELECT nme FROM "+table)
	checkCode(t, err, "42703")
	var found *pgconn.PgError
	errors.As(err, &found)
	if found.Position != 8 || found.Severity != "ERROR" {
		t.Fatalf("%+v", found)
	}
	_, err = conn.Exec(ctx, "SELECT * FROM nothing")
	checkCode(t, err, "42P01")
}

func TestAQueryIsCancelledByItsContext(t *testing.T) {
	conn := connect(t, pgx.QueryExecModeCacheStatement)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := conn.Exec(short, "SELECT count(*) FROM generate_series(1, 100000000000) s")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestAPoolAndItsStatements(t *testing.T) {
	pool, err := pgxpool.New(ctx, address())
	must(t, err)
	defer pool.Close()
	done := make(chan error)
	for n := range 20 {
		go func() {
			var got int
			err := pool.QueryRow(ctx, "SELECT $1::int + 1", n).Scan(&got)
			if err == nil && got != n+1 {
				err = fmt.Errorf("%d + 1 is %d", n, got)
			}
			done <- err
		}()
	}
	for range 20 {
		must(t, <-done)
	}
}

func TestTypesAreRead(t *testing.T) {
	conn := connect(t, pgx.QueryExecModeCacheStatement)
	var numbers []int32
	must(t, conn.QueryRow(ctx, "SELECT ARRAY[1, 2]::int[]").Scan(&numbers))
	var sum int64
	must(t, conn.QueryRow(ctx, "SELECT count(*) FROM generate_series(1, 5) s (n) WHERE n = ANY($1)", []int64{1, 3, 9}).Scan(&sum))
	if !reflect.DeepEqual(numbers, []int32{1, 2}) || sum != 2 {
		t.Fatal(numbers, sum)
	}
}
