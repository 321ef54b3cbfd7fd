use proptest::prelude::*;

use super::ast::{Interval, KeyCondition, KeyFormat, QualifierExpr, Statement};
use super::{ParseError, parse};
use crate::schema::TableSchema;
use crate::schema::tests::{any_definitions, any_table_options};

/// One of everything; each parses, and its print parses to the same.
const SAMPLES: [&str; 96] = [
    "USE '/'",
    "use \"/test/sub\";",
    "CREATE NAMESPACE \"/test\"",
    "CREATE NAMESPACE ns IF NOT EXISTS",
    "CREATE DATABASE IF NOT EXISTS ns",
    "DROP NAMESPACE IF EXISTS ns",
    "DROP DATABASE ns",
    "CREATE TABLE \"query-log\" ( Query, ItemRank, ClickURL );",
    "CREATE TABLE t (a MAX_VERSIONS=1, b TTL 1 DAY, c TIME_ORDER desc, d COUNTER)",
    "CREATE TABLE t (a, INDEX a, b, QUALIFIER INDEX b, )",
    "CREATE TABLE t (index, access, qualifier, row, timestamp)",
    "CREATE TABLE t (a, b, ACCESS GROUP g (a, b) COUNTER true, ACCESS GROUP h () IN_MEMORY)",
    "CREATE TABLE t (a, ACCESS GROUP g IN_MEMORY BLOCKSIZE=1024 ('a'))",
    "CREATE TABLE t (a) IN_MEMORY BLOCKSIZE 10000 TTL 1 WEEK MAX_VERSIONS 3 REPLICATION 2",
    "CREATE TABLE t (c) COMPRESSOR \"zlib --best\" GROUP_COMMIT_INTERVAL=601",
    "CREATE TABLE t (c) BLOOMFILTER='rows --false-positive 0.01' COMPRESSOR none",
    "CREATE TABLE t2 LIKE t",
    "CREATE TABLE t2 WITH 'schema.xml'",
    "ALTER TABLE t ADD ('Red' MAX_VERSIONS 2, ACCESS GROUP ag3 ('Red')) DROP ('http-code')",
    "ALTER TABLE t MODIFY (a TTL 3 seconds) DROP INDEX (a) DROP VALUE INDEX (b)",
    "ALTER TABLE t DROP QUALIFIER INDEX (a, b) RENAME COLUMN FAMILY ('a', 'b')",
    "ALTER TABLE t WITH \"schema.xml\"",
    "RENAME TABLE \"/ns/t\" TO \"ns/r\"",
    "DROP TABLE IF EXISTS t",
    "DROP TABLE if",
    "EXISTS TABLE t",
    "DESCRIBE TABLE t",
    "DESCRIBE TABLE WITH IDS t",
    "SHOW CREATE TABLE \"^t\"",
    "SHOW TABLES",
    "GET LISTING",
    "INSERT INTO t VALUES ('row', 'cf', 'value')",
    "INSERT INTO t VALUES ('foo', 'apple:0', '')",
    "INSERT INTO t VALUES ('2007-12-02 08:00:00', 'foo', 'a:0', \"it's\"), ('bar', 'a:', 12)",
    "INSERT INTO t VALUES (GUID(), 'a', guid())",
    "DELETE * FROM t WHERE ROW = 'k1'",
    "delete \"apple:1\", b from t where row = 'foo' timestamp '2007-12-02 08:00:01'",
    "DELETE a:b, c: FROM t WHERE ROW='r1' VERSION \"2010-01-01 00:00:02\"",
    "SELECT * FROM t",
    "SELECT CELLS * FROM t",
    "SELECT cells FROM t",
    "SELECT cells, b FROM t",
    "SELECT CELLS a:b, 'c':\"d e\", e:*, f:^pre, g:/^w[^a-z']*$/, h: , \"i:j\" FROM t",
    "SELECT a:^\"pre fix\", b:\"\" FROM \"ns/t\"",
    "SELECT * FROM t WHERE ('a' <= ROW <= 'e') and '2008-07-28 00:00:02' < TIMESTAMP < '2009-01-01'",
    "SELECT * FROM t WHERE ROW =^ 'b'",
    "SELECT * FROM t WHERE ROW = ^ 'b'",
    "SELECT * FROM t WHERE ROW = 'a' OR ROW = 'b'",
    "SELECT * FROM t WHERE (ROW = 'a' or 'b' < ROW <= 'c' or ROW > 'x' or 9 > ROW)",
    "SELECT * FROM t WHERE \"farm\",\"tag:abaca\" < CELL <= \"had\",\"tag:x\"",
    "SELECT * FROM t WHERE (CELL = \"a\",\"t:b\" OR CELL =^ \"f\",\"t:a\")",
    "SELECT * FROM t WHERE ROW REGEXP \"^[sm]\\D+$\"",
    "SELECT * FROM t WHERE ROW REGEXP 'a\"b' AND VALUE REGEXP /x\\/y/",
    "SELECT * FROM t WHERE TIMESTAMP >= '2008-06-30 00:00:04'",
    "SELECT a FROM t WHERE a = 'x' AND b =^ 'y' AND c:d =~ /z;/",
    "SELECT a FROM t WHERE a:\"q r\" = 'x' OR b:^c =~ \"y/\" OR 'd:e' = 3",
    "SELECT a FROM t WHERE ROW =^ 'B' AND (a = 'x' OR Exists(b:/c/) OR Regexp(c, '^d'))",
    "SELECT a FROM t WHERE 'row' = 'x' AND value = 'y'",
    "SELECT a FROM t WHERE (a = 'x')",
    "SELECT * FROM t REVS=1 LIMIT=2",
    "SELECT * FROM t MAX_VERSIONS 3 OFFSET 1 LIMIT 2 CELL_LIMIT 9 CELL_LIMIT_PER_FAMILY=4",
    "SELECT * FROM t ROW_OFFSET 1 ROW_LIMIT 2 MAX_REVISIONS=7",
    "SELECT * FROM t CELL_OFFSET 1 DISPLAY_TIMESTAMPS DISPLAY_REVISIONS KEYS_ONLY NO_CACHE",
    "SELECT * FROM t NOESCAPE RETURN_DELETES SCAN_AND_FILTER_ROWS INTO FILE 'a.gz' FS=','",
    "SELECT * FROM t FS='\\t'",
    "LOAD DATA INFILE ROW_KEY_COLUMN=AnonID 'a.tsv' INTO TABLE \"query-log\"",
    "LOAD DATA INFILE ROW_KEY_COLUMN=\"%09id\"+query+\"%-4a\"+'%4b'+\"\\%c\" \"f\" INTO TABLE t",
    "LOAD DATA INFILE TIMESTAMP_COLUMN=at HEADER_FILE=\"h\" ROW_UNIQUIFY_CHARS=21 'f' INTO TABLE t",
    "LOAD DATA INFILE DUP_KEY_COLS=true IGNORE_UNKNOWN_CFS NO_LOG FS=',' 'f.gz' INTO TABLE t",
    "LOAD DATA INFILE DUPLICATE_KEY_COLUMNS SINGLE_CELL_FORMAT NO_ESCAPE \"-\" INTO FILE 'g'",
    "LOAD DATA INFILE IGNORE_UNKNOWN_COLUMNS RETURN_DELETES 'f' INTO TABLE t",
    "DUMP TABLE t",
    "DUMP TABLE t COLUMNS user:/^a/ WHERE ROW REGEXP \"1.*2\" AND VALUE REGEXP \"foob\"",
    "DUMP TABLE t WHERE '2008-07-28' < TIMESTAMP < '2008-07-29' INTO FILE 'foo.tsv.gz'",
    "DUMP TABLE t REVS 1 BUCKETS 1000 NO_TIMESTAMPS NO_ESCAPE FS='|'",
    "COMPACT TABLE t",
    "COMPACT TYPE=MAJOR TABLE t 'row'",
    "COMPACT TYPE=gc RANGES USER|SYSTEM",
    "compact ranges all",
    "REBUILD INDICES t",
    "REBUILD VALUE INDICES t",
    "REBUILD QUALIFIER INDICES 'my table'",
    "SET READONLY=true",
    "SET READONLY false",
    "STATUS",
    "WAIT FOR MAINTENANCE",
    "CLOSE",
    "HELP",
    "HELP create table",
    "? select;",
    "BALANCE ALGORITHM='load' DURATION=100",
    "STOP rs1",
    "SHUTDOWN MASTER;",
    "HEAPCHECK 'f'",
    "  # a comment\n SELECT # columns\n * FROM t # table",
    "SELECT a FROM t WHERE VALUE REGEXP 'x' AND a =~ 'y'",
];

fn check_print(statement: &Statement) {
    let text = statement.to_string();
    let again = parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(&again, statement, "{text}");
}

#[test]
fn every_statement_prints_as_one_that_parses_to_the_same() {
    for sample in SAMPLES {
        let statement = parse(sample).unwrap_or_else(|e| panic!("{sample}: {e}"));
        check_print(&statement);
    }
}

fn error(text: &str) -> ParseError {
    parse(text).expect_err(text)
}

fn check_error(text: &str, expected: &str, hint: Option<&str>) {
    let error = error(text);
    assert_eq!(error.to_string(), format!("HQL parse error at {expected}"), "{text}");
    assert_eq!(error.hint.as_deref(), hint, "{text}");
}

#[test]
fn errors_say_where_and_what_to_write() {
    check_error("SELECT * FORM t", "line 1, column 10: expected FROM, found FORM", None);
    check_error(
        "SELECT *\n FROM t\n DISPLAY_TIMESTAMP",
        "line 3, column 2: expected an option or the end of the statement, found DISPLAY_TIMESTAMP",
        Some("did you mean DISPLAY_TIMESTAMPS?"),
    );
    check_error(
        "CREATE TABLE t (a TIME_ORDER, b)",
        "line 1, column 29: expected ASC or DESC, found \",\"",
        None,
    );
    check_error("CREATE TABLE t (a TTL 3 TTL 4)", "line 1, column 30: TTL is given twice", None);
    check_error(
        "SELECT * FROM t WHERE ROW = abc",
        "line 1, column 29: expected a row, found abc",
        Some("write it in quotes: \"abc\""),
    );
    check_error(
        "SELECT * FROM t WHERE ROW = 'abc",
        "line 1, column 29: the quote is not closed",
        Some("a literal ends with the quote it starts with"),
    );
    check_error(
        "SELCT * FROM t",
        "line 1, column 1: expected a statement, found SELCT",
        Some("did you mean SELECT?"),
    );
    check_error("", "line 1, column 1: expected a statement, found the end", None);
    let mixed = error("SELECT * FROM t WHERE a = 'x' AND b = 'y' OR c = 'z'");
    assert_eq!(mixed.message, "AND and OR stand side by side");
    let bad = error("SELECT * FROM t WHERE \"old\",\"tag:foo\" < CELL >= \"old\",\"tag:abacate\"");
    assert_eq!(bad.message, "these relations make no interval");
    assert_eq!(error("SELECT a FROM t OFFSET 1 CELL_OFFSET 2").position, 39);
}

#[test]
fn columns_are_told_apart_by_what_follows_the_colon() {
    let Ok(Statement::Select(select)) =
        parse("SELECT a, b:c, d:*, e:^f, g:/h\\/i/, j:'k l' FROM t")
    else {
        panic!("no select");
    };
    let qualifiers: Vec<QualifierExpr> = select.columns.into_iter().map(|c| c.qualifier).collect();
    assert_eq!(
        qualifiers,
        [
            QualifierExpr::Any,
            QualifierExpr::Exact("c".into()),
            QualifierExpr::Any,
            QualifierExpr::Prefix("f".into()),
            QualifierExpr::Regexp("h/i".into()),
            QualifierExpr::Exact("k l".into()),
        ]
    );
}

#[test]
fn a_key_may_stand_on_either_side() {
    let keys = |text: &str| match parse(text) {
        Ok(Statement::Select(select)) => select.conditions.keys,
        other => panic!("{other:?}"),
    };
    let left = keys("SELECT * FROM t WHERE 'a' < ROW");
    assert_eq!(left, keys("SELECT * FROM t WHERE ROW > 'a'"));
    let [KeyCondition::Rows(rows)] = left.as_slice() else { panic!("{left:?}") };
    assert!(matches!(rows.as_slice(), [Interval::Between { start: Some(_), end: None }]));
}

#[test]
fn key_columns_say_their_width() {
    let Ok(Statement::LoadData(load)) = parse(SAMPLES[66]) else { panic!("no load") };
    let columns: Vec<(String, KeyFormat)> =
        load.options.row_key_columns.into_iter().map(|c| (c.name, c.format)).collect();
    assert_eq!(
        columns,
        [
            ("id".into(), KeyFormat::ZeroPadded(9)),
            ("query".into(), KeyFormat::Plain),
            ("a".into(), KeyFormat::Left(4)),
            ("b".into(), KeyFormat::Right(4)),
            ("%c".into(), KeyFormat::Plain),
        ]
    );
}

/// Words, symbols and junk that samples are spoilt with.
const PIECES: [&str; 28] = [
    "(",
    ")",
    ",",
    "=",
    "<",
    "=^",
    "=~",
    ":",
    "*",
    "/",
    "'",
    "\"",
    ";",
    "#",
    "\n",
    "ROW",
    "CELL",
    "TABLE",
    "'x'",
    "\"a:b\"",
    "12",
    "INDEX",
    "ACCESS GROUP",
    "AND",
    "OR",
    "é",
    "\\",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn spoilt_statements_parse_or_are_refused(
        sample in 0..SAMPLES.len(), cuts in prop::collection::vec((0_usize..99, 0_usize..12), 0..3),
        pieces in prop::collection::vec((0_usize..99, 0..PIECES.len()), 0..3),
    ) {
        let mut text: Vec<char> = SAMPLES[sample].chars().collect();
        for (at, length) in cuts {
            let at = at.min(text.len());
            text.drain(at..(at + length).min(text.len()));
        }
        for (at, piece) in pieces {
            let at = at.min(text.len());
            text.splice(at..at, PIECES[piece].chars());
        }
        let text: String = text.into_iter().collect();
        match parse(&text) {
            Ok(statement) => check_print(&statement),
            Err(error) => prop_assert!(error.position <= text.chars().count() + 1),
        }
    }

    #[test]
    fn any_text_is_parsed_without_panic(text in any::<String>()) {
        let _ = parse(&text);
        let _ = parse(&format!("SELECT {text}"));
    }

    #[test]
    fn what_show_create_table_prints_makes_the_same_table(
        definitions in any_definitions(), options in any_table_options(),
    ) {
        let schema = TableSchema::create(&definitions, options).unwrap();
        let text = schema.show_create("my-table");
        let parsed = parse(&text).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        check_print(&parsed);
        let Statement::CreateTable { source, .. } = parsed else { unreachable!("{text}") };
        let super::ast::TableSource::Definitions(definitions, options) = source else {
            unreachable!("{text}")
        };
        let again = TableSchema::create(&definitions, options).unwrap();
        prop_assert_eq!(again.show_create("my-table"), text);
        prop_assert_eq!(again.describe(true), schema.describe(true));
    }
}
