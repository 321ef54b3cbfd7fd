use super::*;
use crate::create_table::CreateTableStatement;

fn one(sql: &str) -> StatementKind {
    let mut statements = parse(sql, |_| Ok(None)).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    assert_eq!(statements.len(), 1, "{sql}");
    statements.remove(0).kind
}

fn create(sql: &str) -> CreateTableStatement {
    match one(sql) {
        StatementKind::CreateTable(table) => *table,
        other => panic!("{sql}: {other:?}"),
    }
}

fn fails(sql: &str, part: &str) {
    let error = parse(sql, |_| Ok(None)).expect_err(sql);
    assert_eq!(error.sqlstate(), "42601", "{sql}: {error:?}");
    let said = format!("{}; {}", error.message(), error.hint().unwrap_or_default());
    assert!(said.contains(part), "{sql}: {error:?}");
}

#[test]
fn parameters_get_their_numbers_outside_of_quotes() {
    let check = |sql: &str, expected: &str| assert_eq!(number_parameters(sql), expected, "{sql}");
    check("SELECT ? + ?", "SELECT $1 + $2");
    check("SELECT '?', \"?\", ? -- ?\n, /* ? */ ?", "SELECT '?', \"?\", $1 -- ?\n, /* ? */ $2");
    check("SELECT 'ä?', ?", "SELECT 'ä?', $1");
    check("SELECT $2, '?'", "SELECT $2, '?'");
    check("SELECT $$ ? $$ || ?", "SELECT $$ ? $$ || $1");
    check("SELECT 'open ?", "SELECT 'open ?");
}

#[test]
fn a_text_is_cut_at_semicolons_outside_of_quotes() {
    let check = |sql: &str, expected: &[&str]| assert_eq!(split_statements(sql), expected, "{sql}");
    check("SELECT 1; SELECT 2;", &["SELECT 1", "SELECT 2"]);
    check("SELECT ';' ; SELECT \";\"", &["SELECT ';'", "SELECT \";\""]);
    check("SELECT E'\\';' ; x", &["SELECT E'\\';'", "x"]);
    check("-- a;\n;/* b; /* c */ ; */; SELECT $$;$$", &["SELECT $$;$$"]);
    check("SELECT $1; SELECT $x$ ; $x$", &["SELECT $1", "SELECT $x$ ; $x$"]);
    check("", &[]);
}

#[test]
fn spellings_of_postgresql_hive_and_spark_give_the_same_table() {
    let ours = create(
        "CREATE TABLE t (a BIGINT NOT NULL, d DATE, s TEXT) PARTITIONED BY (month(d)) ORDER BY (a, d DESC)",
    );
    let spark = create(
        "CREATE TABLE t (a bigint NOT NULL, d date, s string) USING iceberg PARTITIONED BY (months(d)) ORDER BY a, d DESC",
    );
    assert_eq!(ours.columns, spark.columns);
    assert_eq!(ours.partition_by, spark.partition_by);
    assert_eq!(ours.sort_by, spark.sort_by);
    let hive = create("CREATE TABLE t (a BIGINT) PARTITIONED BY (d DATE) STORED AS ORC");
    assert_eq!(hive.columns.len(), 2);
    assert_eq!(hive.partition_by[0].column, "d");
}

#[test]
fn properties_comments_and_queries_are_taken() {
    let table = create(
        "CREATE TABLE IF NOT EXISTS n.t COMMENT 'x' TBLPROPERTIES ('a.b' = '1', c = 2) AS SELECT 1 AS a",
    );
    assert!(table.if_not_exists && table.query.is_some());
    assert_eq!(table.comment.as_deref(), Some("x"));
    let expected = [("a.b".to_owned(), "1".to_owned()), ("c".to_owned(), "2".to_owned())];
    assert_eq!(table.properties, expected);
}

#[test]
fn what_a_table_cannot_have_is_refused_by_name() {
    fails("CREATE TABLE t (a INT UNIQUE)", "UNIQUE");
    fails("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))", "one PRIMARY KEY");
    fails("CREATE TABLE t (a INT DEFAULT)", "an expression after DEFAULT");
    fails("CREATE TABLE t", "columns in parentheses");
    fails("CREATE TABLE t (a INT) STORED AS PARQUET", "orc");
    fails("CREATE TABLE t (a INT) PARTITIONED BY (week(a))", "unknown partition transform week");
    fails("SELECT 1 SELECT 2", "");
}

#[test]
fn copy_knows_both_option_forms() {
    let StatementKind::Copy(copy) = one("COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER)")
    else {
        panic!("no copy");
    };
    assert_eq!(copy.columns, ["a", "b"]);
    assert_eq!(copy.options[1], ("header".to_owned(), "true".to_owned()));
    let StatementKind::Copy(copy) = one("COPY t FROM STDIN CSV DELIMITER ';'") else {
        panic!("no copy");
    };
    assert_eq!(copy.options[1], ("delimiter".to_owned(), ";".to_owned()));
}

#[test]
fn copy_is_binary_in_all_forms_of_postgresql() {
    for (sql, columns) in [
        ("COPY t FROM STDIN (FORMAT binary)", 0),
        ("COPY t (a) FROM STDIN WITH (FORMAT 'binary')", 1),
        ("COPY t FROM STDIN BINARY", 0),
        ("COPY t TO STDOUT WITH BINARY", 0),
        ("COPY BINARY t FROM STDIN", 0),
        ("copy binary s.t (a, b) to stdout", 2),
        ("COPY (SELECT 1) TO STDOUT (FORMAT BINARY)", 0),
    ] {
        let StatementKind::Copy(copy) = one(sql) else { panic!("no copy: {sql}") };
        assert_eq!(copy.options, [("format".to_owned(), "binary".to_owned())], "{sql}");
        assert_eq!(copy.columns.len(), columns, "{sql}");
    }
    for sql in ["COPY binary FROM STDIN", "COPY binary (a) FROM STDIN", "COPY \"binary\" TO STDOUT"]
    {
        let StatementKind::Copy(copy) = one(sql) else { panic!("no copy: {sql}") };
        assert!(copy.options.is_empty(), "{sql}");
    }
    fails("COPY BINARY t FROM STDIN CSV", "another format");
    fails("COPY BINARY (SELECT 1) TO STDOUT", "");
}

#[test]
fn copy_knows_programs() {
    for sql in [
        "COPY t FROM PROGRAM 'cat'",
        "COPY t TO PROGRAM 'cat' WITH (FORMAT csv)",
        "COPY (SELECT 1) TO PROGRAM 'cat'",
    ] {
        let StatementKind::Copy(copy) = one(sql) else { panic!("no copy: {sql}") };
        assert!(matches!(copy.source, CopySource::Program), "{sql}");
    }
    fails("COPY t FROM PROGRAM", "");
}

#[test]
fn settings_and_transactions_are_recognised() {
    let set = |sql: &str, name: &str, value: Option<&str>| match one(sql) {
        StatementKind::Set { name: Some(n), value: v, .. } => {
            assert_eq!((n.as_str(), v.as_deref()), (name, value), "{sql}");
        }
        other => panic!("{sql}: {other:?}"),
    };
    set("SET extra_float_digits = 3", "extra_float_digits", Some("3"));
    set("SET SESSION timezone TO 'UTC'", "timezone", Some("UTC"));
    set("SET TIME ZONE 'UTC'", "timezone", Some("UTC"));
    set("RESET timezone", "timezone", None);
    set("USE sales", "search_path", Some("sales"));
    let control = |sql: &str, expected| match one(sql) {
        StatementKind::Transaction(control) => assert_eq!(control, expected, "{sql}"),
        other => panic!("{sql}: {other:?}"),
    };
    let modes = |isolation, read_only| TransactionModes { isolation, read_only };
    let committed = modes(Some(Isolation::ReadCommitted), None);
    control("BEGIN ISOLATION LEVEL READ COMMITTED", TransactionControl::Begin(committed));
    let repeatable = modes(Some(Isolation::RepeatableRead), Some(true));
    let begin = "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY, NOT DEFERRABLE";
    control(begin, TransactionControl::Begin(repeatable));
    control("SET TRANSACTION READ WRITE", TransactionControl::Modes(modes(None, Some(false))));
    control("ROLLBACK TO SAVEPOINT a", TransactionControl::RollbackToSavepoint("a".to_owned()));
    control("RELEASE a", TransactionControl::Release("a".to_owned()));
    control("COMMIT AND NO CHAIN", TransactionControl::Commit);
    for wrong in ["COMMIT AND CHAIN", "BEGIN NONSENSE", "COMMIT PREPARED 'a'", "SAVEPOINT"] {
        assert_eq!(parse(wrong, |_| Ok(None)).unwrap_err().sqlstate(), "42601", "{wrong}");
    }
    control("end", TransactionControl::Commit);
}

#[test]
fn alter_table_takes_several_changes() {
    let StatementKind::AlterTable(alter) =
        one("ALTER TABLE t ADD COLUMN a INT, DROP COLUMN IF EXISTS b, RENAME c TO d")
    else {
        panic!("no alter");
    };
    assert_eq!(alter.actions.len(), 3);
}

#[test]
fn alter_table_rolls_back() {
    let check = |text: &str, expected: RollBackTarget| {
        let StatementKind::AlterTable(alter) = one(text) else { panic!("{text}: no alter") };
        let [AlterAction::RollBack(target)] = alter.actions.as_slice() else { panic!("{text}") };
        assert_eq!(*target, expected, "{text}");
    };
    check("ALTER TABLE t ROLLBACK TO VERSION 7", RollBackTarget::Snapshot(7));
    check("ALTER TABLE a.t rollback to version 'eoy'", RollBackTarget::Named("eoy".to_owned()));
    check(
        "ALTER TABLE t ROLLBACK TO TIMESTAMP '2026-01-31'",
        RollBackTarget::Time("2026-01-31".to_owned()),
    );
    check("ALTER TABLE t EXECUTE ROLLBACK(7)", RollBackTarget::Snapshot(7));
    check(
        "ALTER TABLE t EXECUTE ROLLBACK('2026-01-31')",
        RollBackTarget::Time("2026-01-31".to_owned()),
    );
}

#[test]
fn a_roll_back_to_nothing_says_to_what_there_is_one() {
    for text in [
        "ALTER TABLE t ROLLBACK TO",
        "ALTER TABLE t ROLLBACK TO 7",
        "ALTER TABLE t ROLLBACK TO SAVEPOINT a",
    ] {
        fails(text, "VERSION id, VERSION 'tag' or TIMESTAMP 'time'");
    }
    fails("ALTER TABLE t ROLLBACK TO VERSION", "the id of a snapshot, or 'tag'");
    fails("ALTER TABLE t ROLLBACK TO VERSION eoy", "the id of a snapshot, or 'tag'");
}

#[test]
fn plain_rows_are_not_walked_over() {
    let is_plain = |text: &str| {
        let statement = crate::parse_query(text).unwrap();
        crate::adapt::inserts_literals(&statement)
    };
    for text in [
        "INSERT INTO t VALUES (1, -2.5, 'x', NULL, true), ($1, 1, 1, 1, 1)",
        "INSERT INTO s.t (a, b) VALUES (1e5, '2024-01-01')",
    ] {
        assert!(is_plain(text), "{text}");
    }
    for text in [
        "INSERT INTO t VALUES (1 + 1)",
        "INSERT INTO t VALUES (1), ((SELECT 1))",
        "INSERT INTO t VALUES (now())",
        "INSERT INTO t SELECT 1",
        "WITH x AS (SELECT 1) INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (1) RETURNING a IS DISTINCT FROM 1",
        "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
        "VALUES (1), (2)",
        "SELECT 1",
    ] {
        assert!(!is_plain(text), "{text}");
    }
}
