//! Bad lines: where they are said to be, and what happens to them.
#![allow(clippy::unwrap_used)]

mod common;

use arrow_schema::{DataType, Field, Schema};
use common::{error_of, load, options, rows, schema, stream};
use std::sync::Arc;

fn two() -> arrow_schema::SchemaRef {
    schema(&[("name", DataType::Utf8), ("trips", DataType::Int64)])
}

#[test]
fn errors_name_the_physical_line() {
    let check = |name: &str, text: &str, settings: &[(&str, &str)], expected: &str| {
        let error = error_of(name, text, two(), options(settings));
        assert_eq!(error.message(), expected, "{text:?}");
    };
    let bad = "column \"trips\": \"x\" is not a bigint";
    for end in ["\n", "\r\n", "\r"] {
        let text = ["name,trips", "a,1", "", "\"b", "b\",2", "c,x", "d,4", ""].join(end);
        check("f.csv", &text, &[], &format!("f.csv line 6, {bad}"));
    }
    // The bad field itself starts on a later line than its record.
    check("f.csv", "name,trips\n\"a\n\nb\",x\n", &[], &format!("f.csv line 4, {bad}"));
    check(
        "f.csv",
        "# title\n\nname,trips\na,x",
        &[("skip_lines", "2")],
        &format!("f.csv line 4, {bad}"),
    );
    check("f.csv", "name,trips\n#c\na,x", &[("comment", "#")], &format!("f.csv line 3, {bad}"));
    check("f.csv", "\u{feff}name,trips\na,x", &[], &format!("f.csv line 2, {bad}"));
    check("f.csv", "name,trips\na\n", &[], "f.csv line 2: 1 field, expected 2");
    check("f.csv", "name,trips\na,1,2\n", &[], "f.csv line 2: 3 fields, expected 2");
    check(
        "f.csv",
        "name,trips\na,1\n\"b,2\nc,3\n",
        &[],
        "f.csv line 3: the quoted field that opens at byte 1 of the line is never closed",
    );
    check(
        "f.csv",
        "name,trips\n\"a\"b,1\n",
        &[],
        "f.csv line 2: text after the closing quote, at byte 4 of the record",
    );
    check("f.pgtext", "a\t1\nb\\\nb\t2\nc\tx\n", &[], &format!("f.pgtext line 4, {bad}"));
    check("f.pgtext", "a\t\n", &[], "f.pgtext line 1, column \"trips\": \"\" is not a bigint");
    check(
        "f.ndjson",
        "{\"name\":\"a\"}\n\n{\"trips\":\"x\"}",
        &[],
        &format!("f.ndjson line 3, {bad}"),
    );
    check(
        "f.ndjson",
        "{\"name\":\"a\",\"other\":1}",
        &[],
        "f.ndjson line 1: the table has no column for the key \"other\"",
    );
    check(
        "f.ndjson",
        "{\"name\":\"a\"",
        &[],
        "f.ndjson line 1: not a JSON object, byte 11: EOF while parsing an object",
    );
    check("f.ndjson", "[1,\n2]", &[], "f.ndjson line 1: not a JSON object on one line");
    check(
        "f.ndjson",
        "{\"trips\":1,\"trips\":2}",
        &[],
        "f.ndjson line 1, column \"trips\": the key comes twice",
    );
    check(
        "f.ndjson",
        "{\"trips\":1.5}",
        &[],
        "f.ndjson line 1, column \"trips\": \"1.5\" is not a bigint",
    );
    check(
        "f.ndjson",
        "{\"trips\":true}",
        &[],
        "f.ndjson line 1, column \"trips\": \"true\" is not a bigint",
    );
}

#[test]
fn hints_name_the_option() {
    let check = |text: &str, settings: &[(&str, &str)], expected: &str| {
        let error = error_of("f.csv", text, two(), options(settings));
        assert!(error.hint().unwrap_or("").contains(expected), "{error:?}");
    };
    check("name,trips\na,\"1,137\"\n", &[], "thousands_separator");
    check("name;trips\na;1\n", &[], "delimiter to ';'");
    check("a;1\n", &[("header", "false")], "delimiter to ';'");
    check("name,trips\na,1\n", &[("header", "false")], "header to true");
    check("a,1\nb,2\n", &[], "header to false");
    check("name,trips\na,n/a\n", &[], "null_text");
}

/// The line that is looked at for names is shorter than the fields that were found.
#[test]
fn a_first_record_over_two_lines_can_be_malformed() {
    let error = error_of("f.csv", "\"a\nb\",\"c\"d\n", two(), options(&[("header", "false")]));
    assert_eq!(
        error.message(),
        "f.csv line 1: text after the closing quote, at byte 10 of the record"
    );
}

#[test]
fn a_missing_value_is_refused_where_null_is() {
    let strict = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
    let error = error_of("f.csv", "n\n1\n\"\"\n", strict.clone(), options(&[]));
    assert_eq!(
        error.message(),
        "f.csv line 3, column \"n\": no value, but the column must not be NULL"
    );
    assert_eq!(error.sqlstate(), "23502");
    let error = error_of("f.ndjson", "{}", strict, options(&[]));
    assert_eq!(error.sqlstate(), "23502");
}

#[test]
fn bad_lines_go_to_the_reject_file_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.csv");
    let mut settings = options(&[("max_errors", "5")]);
    settings.reject_file = Some(file.clone());
    let text = "name,trips\na,1\n\"b\nb\",x\nc,3,3\n\"d,4\ne,5";
    let input = || vec![stream("f.csv", text)];
    let batches = load(input(), two(), settings.clone()).unwrap();
    assert_eq!(rows(&batches), [["a", "1"], ["e", "5"]]);
    let rejected = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        rejected,
        "# reject: f.csv line 4, column \"trips\": \"x\" is not a bigint\n\"b\nb\",x\n\
         # reject: f.csv line 5: 3 fields, expected 2\nc,3,3\n\
         # reject: f.csv line 6: the quoted field that opens at byte 1 of the line is never closed\n\"d,4\n"
    );
    // Corrected, the file loads again.
    let corrected = rejected.replace('x', "2").replace("c,3,3", "c,3").replace("\"d", "d");
    let again = options(&[("comment", "# reject: "), ("header", "false")]);
    let batches = load(vec![stream("bad.csv", corrected)], two(), again).unwrap();
    assert_eq!(rows(&batches), [["b\nb", "2"], ["c", "3"], ["d", "4"]]);

    settings.max_errors = 2;
    let error = load(input(), two(), settings).unwrap_err();
    assert!(error.message().starts_with("f.csv line 6"), "{error:?}");
    assert_eq!(error.detail(), Some("more than max_errors = 2 bad lines"));
}

#[test]
fn rejects_of_carriage_return_files_keep_their_line_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.csv");
    let mut settings = options(&[("max_errors", "5")]);
    settings.reject_file = Some(file.clone());
    load(vec![stream("f.csv", "name,trips\ra,x\rb,2\r")], two(), settings).unwrap();
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "# reject: f.csv line 2, column \"trips\": \"x\" is not a bigint\ra,x\r"
    );
}

#[test]
fn nothing_is_read_after_the_first_error() {
    let text = format!("name,trips\na,x\n{}", "b,1\n".repeat(1_000_000));
    let reader = stoa_load::open(vec![stream("f.csv", text)], two(), options(&[])).unwrap();
    let progress = reader.progress();
    let results: Vec<_> = reader.collect();
    assert_eq!(results.len(), 1);
    assert!(progress.bytes_read() < progress.bytes_total() / 2);
}

#[test]
fn lines_have_a_limit() {
    let settings = options(&[("max_line_bytes", "1024")]);
    let fits = format!("name,trips\n{},1\n", "a".repeat(1000));
    assert_eq!(load(vec![stream("f.csv", fits)], two(), settings.clone()).unwrap().len(), 1);
    let text = format!("name,trips\na,1\n{},1\n", "a".repeat(1_000_000));
    let error = error_of("f.csv", &text, two(), settings.clone());
    assert_eq!(error.message(), "f.csv line 3 is longer than 1024 bytes");
    assert_eq!(error.sqlstate(), "54000");
    // An open quote spoils its line, not the rest of the file.
    let text = format!("name,trips\n\"a,1\n{}", "b,2\n".repeat(1000));
    let mut settings = options(&[("max_line_bytes", "1024"), ("max_errors", "1")]);
    settings.batch_rows = 10;
    let batches = load(vec![stream("f.csv", text)], two(), settings).unwrap();
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 1000);
}

#[test]
fn lines_of_streams_have_a_limit_that_options_do_not_raise() {
    // A few kilobytes that become one line of 256 MiB.
    let mut small = Vec::new();
    let line = std::io::Read::take(std::io::repeat(b'a'), 256 << 20);
    zstd::stream::copy_encode(line, &mut small, 3).unwrap();
    assert!(small.len() < 64 << 10, "{}", small.len());
    for format in ["csv", "ndjson"] {
        let settings = options(&[
            ("max_line_bytes", "1073741824"),
            ("compression", "zstd"),
            ("format", format),
            ("header", "false"),
        ]);
        let sent = vec![stream("sent", small.clone())];
        let error = load(sent, two(), settings).unwrap_err();
        assert_eq!(error.message(), "sent line 1 is longer than 67108864 bytes", "{format}");
        assert_eq!(error.sqlstate(), "54000");
        assert!(error.hint().unwrap().contains("must be in a file"));
    }
    // A file may have it.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.csv");
    std::fs::write(&path, format!("name,trips\n{},1\n", "a".repeat(65 << 20))).unwrap();
    let settings = options(&[("max_line_bytes", "1073741824")]);
    let batches = load(vec![stoa_load::Input::Path(path)], two(), settings).unwrap();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
}

#[test]
fn files_that_are_not_there_or_not_text() {
    let missing = stoa_load::Input::Path("no/such/file.csv".into());
    let error = load(vec![missing], two(), options(&[])).unwrap_err();
    assert_eq!(error.message(), "file no/such/file.csv does not exist");
    let folder = tempfile::tempdir().unwrap();
    let error = load(vec![stoa_load::Input::Path(folder.path().into())], two(), options(&[]));
    assert!(error.unwrap_err().message().ends_with("is a directory"));
    let utf16 = load(vec![stream("f.csv", [0xff, 0xfe, b'a', 0])], two(), options(&[]));
    assert_eq!(utf16.unwrap_err().message(), "f.csv is UTF-16");
    let gzip = load(vec![stream("f.csv.gz", "name,trips\n")], two(), options(&[])).unwrap_err();
    assert!(gzip.message().starts_with("f.csv.gz is damaged"), "{gzip:?}");
    let error = load(vec![stream("f.dat", "")], two(), options(&[])).unwrap_err();
    assert!(error.hint().unwrap().contains("format"));
}

#[test]
fn options_that_contradict_each_other_are_named() {
    let check = |settings: &[(&str, &str)], expected: &str| {
        let error = error_of("f.csv", "name,trips\n", two(), options(settings));
        assert!(error.message().contains(expected), "{error:?}");
    };
    check(&[("delimiter", "'"), ("quote", "'")], "delimiter and quote");
    check(&[("thousands_separator", ".")], "decimal_point");
    check(&[("true_text", "x"), ("false_text", "X")], "both have \"x\"");
    check(&[("reject_file", "bad.csv")], "no errors are allowed");
}

#[test]
fn copy_from_stdin_has_the_defaults_of_postgresql() {
    let mut text = stoa_load::LoadOptions::pg_copy();
    let batches = load(vec![stream("stdin", "a\t1\n\\N\t2\n")], two(), text.clone()).unwrap();
    assert_eq!(rows(&batches), [["a", "1"], ["NULL", "2"]]);
    text.set("format", "csv").unwrap();
    let batches = load(vec![stream("stdin", "a,1\n,2\n")], two(), text.clone()).unwrap();
    assert_eq!(rows(&batches), [["a", "1"], ["NULL", "2"]]);
    text.set("header", "true").unwrap();
    let batches = load(vec![stream("stdin", "trips,name\n1,a\n")], two(), text).unwrap();
    assert_eq!(rows(&batches), [["a", "1"]]);
}
