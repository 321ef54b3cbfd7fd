//! Whole sessions over cells in memory: the seed's session against an oracle, statistics, exit
//! codes, files.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use stoa_hql::{
    BufferOutput, ConsoleOutput, EXIT_ERROR, LineSource, LocalFiles, MemoryCells, NoFiles, Output,
    ReaderLines, Session, SessionOptions, Shell, ShellOptions, TextLines, TimestampFormat,
    TimestampSource, Zone,
};
use tempfile::TempDir;

/// A query log with the shape of the one of 2008: few users with many lines, about half of them
/// with a click.
fn query_log(lines: u64, header: &str) -> String {
    let mut text = format!("{header}\n");
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for _ in 0..lines {
        let spread = 1 + random(400) * random(40);
        let user = 1000 + random(spread);
        let words = ["zip", "codes", "weather", "maps", "news", "cars", "music"];
        let query: Vec<&str> = (0..=random(3)).map(|_| words[random(7) as usize]).collect();
        let query = query.join(" ");
        let _ = match random(100) {
            0..53 => writeln!(text, "{user}\t{query}\t{}\thttp://{user}.example", 1 + random(20)),
            53..60 => writeln!(text, "{user}\t{query}\t\t"),
            _ => writeln!(text, "{user}\t{query}"),
        };
    }
    text
}

/// What `select *` must print: by user, by column, the last line first.
fn oracle(log: &str) -> String {
    let mut cells: BTreeMap<(&str, usize), Vec<&str>> = BTreeMap::new();
    for line in log.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        for column in 1..fields.len() {
            if !fields[column].is_empty() {
                cells.entry((fields[0], column)).or_default().push(fields[column]);
            }
        }
    }
    let names = ["", "Query", "ItemRank", "ClickURL"];
    let mut text = String::new();
    for ((user, column), values) in &cells {
        for value in values.iter().rev() {
            text.push_str(&format!("{user}\t{}\t{value}\n", names[*column]));
        }
    }
    text
}

struct Run {
    code: i32,
    out: BufferOutput,
}

async fn run_in(folder: &Path, script: &str) -> Run {
    let options = SessionOptions {
        timestamp_format: TimestampFormat::from_name("usecs").unwrap(),
        zone: Zone::Utc,
        silent: false,
    };
    let store = Arc::new(MemoryCells::new(TimestampSource::manual(1_000_000)));
    let session = Session::new(store, Arc::new(LocalFiles::new(folder)), options);
    let options = ShellOptions { batch: true, ..ShellOptions::default() };
    let mut out = BufferOutput::default();
    let mut shell = Shell::new(session, options);
    let code = shell.run(&mut TextLines::new(script), &mut out).await.unwrap();
    Run { code, out }
}

impl Run {
    fn results(&self) -> String {
        String::from_utf8(self.out.results.clone()).unwrap()
    }
}

const SEED: &str = "CREATE TABLE \"query-log\" ( Query, ItemRank, ClickURL );\n\
    LOAD DATA INFILE ROW_KEY_COLUMN=AnonID 'a.tsv' INTO TABLE \"query-log\";\n\
    select * from \"query-log\"; quit;\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_of_2008_prints_what_the_oracle_says() {
    let folder = TempDir::new().unwrap();
    for (lines, header) in [
        (60_000, "AnonID\tQuery\tItemRank\tClickURL"),
        (5000, "#AnonID\tQuery\tItemRank\tClickURL"),
    ] {
        let log = query_log(lines, header);
        fs::write(folder.path().join("a.tsv"), &log).unwrap();
        let run = run_in(folder.path(), SEED).await;
        let clicks = log.lines().skip(1).filter(|line| line.contains("http")).count();
        let results = run.results();
        assert_eq!(results.lines().count(), lines as usize + 2 * clicks);
        assert!(results == oracle(&log), "the answer differs from the oracle's");
        assert_eq!(run.code, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loads_and_selects_end_with_statistics() {
    let folder = TempDir::new().unwrap();
    let log = query_log(1000, "AnonID\tQuery\tItemRank\tClickURL");
    fs::write(folder.path().join("a.tsv"), &log).unwrap();
    let run = run_in(folder.path(), SEED).await;
    let cells = run.results().lines().count();
    let fields: Vec<Vec<&str>> =
        log.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    let filled = |fields: &[&str]| fields[1..].iter().filter(|f| !f.is_empty()).count();
    let keys: usize = fields.iter().map(|fields| fields[0].len() * filled(fields)).sum();
    let average = format!("  Avg key size:  {:.2} bytes", keys as f64 / cells as f64);

    let (load, select) = run.out.notices.split_once("Resends:  0\n").unwrap();
    assert!(load.starts_with("\nLoad complete.\n\n  Elapsed time:  0."), "{load}");
    for block in [load, select] {
        assert!(block.contains(&format!("   Total cells:  {cells}\n")), "{block}");
        assert!(block.contains(&average), "{block}");
        assert!(block.contains(" cells/s\n"), "{block}");
    }
    let marks = load.lines().map(|line| line.split(':').next().unwrap()).collect::<Vec<_>>();
    assert_eq!(
        marks[2..],
        [
            "",
            "  Elapsed time",
            "Avg value size",
            "  Avg key size",
            "    Throughput",
            "   Total cells",
            "    Throughput",
            "       "
        ]
    );
    assert!(run.out.progress.contains(&format!("Loading {},", log.len() / 1000)));
    assert!(run.out.progress.ends_with(&format!("{}\n", "*".repeat(51))));
}

#[tokio::test]
async fn a_batch_ends_with_its_first_error() {
    let folder = TempDir::new().unwrap();
    let script = "create table t (a);\nselect * from none;\ndrop table t;\n";
    let run = run_in(folder.path(), script).await;
    assert_eq!(run.code, EXIT_ERROR);
    assert_eq!(run.results(), "Hypertable CRITICAL - table /none does not exist\n");
    let run = run_in(folder.path(), "status; exit 7; select * from none;").await;
    assert_eq!((run.code, run.results().as_str()), (7, "Hypertable OK\n"));
    let run = run_in(folder.path(), "exists table t").await;
    assert_eq!((run.code, run.results().as_str()), (0, "false\n"));
}

/// A shell that goes on after errors, over what is given.
async fn shell_over(lines: &mut dyn LineSource, out: &mut dyn Output) -> i32 {
    let store = Arc::new(MemoryCells::new(TimestampSource::manual(1_000_000)));
    let session = Session::new(store, Arc::new(NoFiles), SessionOptions::default());
    Shell::new(session, ShellOptions::default()).run(lines, out).await.unwrap()
}

#[tokio::test]
async fn the_exit_code_is_that_of_the_last_statement() {
    for (script, code) in [
        ("select * from none;\nstatus;\n", 0),
        ("status;\nselect * from none;\n", EXIT_ERROR),
        ("status;\nselect * from none", EXIT_ERROR),
        ("select * from none;\nquit\n", 0),
        ("nonsense;\nexit 7\n", 7),
        ("source 'none.hql'\n", EXIT_ERROR),
        ("", 0),
    ] {
        let mut out = BufferOutput::default();
        assert_eq!(shell_over(&mut TextLines::new(script), &mut out).await, code, "{script}");
    }
}

/// Lines that are given only when all that was printed has arrived.
struct Asking<'a> {
    arrived: &'a Mutex<Vec<u8>>,
    lines: Vec<(&'static str, &'static str)>,
}

impl LineSource for Asking<'_> {
    fn next_line(&mut self, _: &str) -> stoa_error::Result<Option<String>> {
        if self.lines.is_empty() {
            return Ok(None);
        }
        let (before, line) = self.lines.remove(0);
        let arrived = String::from_utf8(self.arrived.lock().unwrap().clone()).unwrap();
        assert_eq!(arrived, before, "before {line}");
        Ok(Some(line.to_owned()))
    }
}

struct Arrived<'a>(&'a Mutex<Vec<u8>>);

impl Write for Arrived<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_answer_is_there_before_the_next_line_is_waited_for() {
    let arrived = Mutex::new(Vec::new());
    let buffered = std::io::BufWriter::new(Arrived(&arrived));
    let mut out = ConsoleOutput::new(buffered, Vec::new());
    let lines = vec![
        ("", "status;"),
        ("Hypertable OK\n", "exists table"),
        ("Hypertable OK\n", "t;"),
        ("Hypertable OK\nfalse\n", "status; status;"),
        ("Hypertable OK\nfalse\nHypertable OK\nHypertable OK\n", "quit"),
    ];
    assert_eq!(shell_over(&mut Asking { arrived: &arrived, lines }, &mut out).await, 0);
}

/// What somebody pastes: several lines as one.
struct Pasted(Vec<&'static str>);

impl LineSource for Pasted {
    fn next_line(&mut self, _: &str) -> stoa_error::Result<Option<String>> {
        Ok((!self.0.is_empty()).then(|| self.0.remove(0).to_owned()))
    }
}

#[tokio::test]
async fn pasted_lines_are_lines() {
    let mut out = BufferOutput::default();
    let pasted = vec![
        "status; # a comment\nhelp nothing\r\nexists\ntable t;",
        "exists table u; status;\n\nexit 7\nstatus;",
        "status;",
    ];
    assert_eq!(shell_over(&mut Pasted(pasted), &mut out).await, 7);
    let printed = String::from_utf8(out.results).unwrap();
    let ok = "Hypertable OK\n";
    assert!(printed.starts_with(ok), "{printed}");
    assert!(printed.ends_with(&format!("false\nfalse\n{ok}")), "{printed}");
}

#[tokio::test]
async fn a_line_without_end_is_refused() {
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let store = Arc::new(MemoryCells::default());
    let session = Session::new(store, Arc::new(NoFiles), SessionOptions::default());
    let mut shell = Shell::new(session, ShellOptions::default());
    let mut lines = ReaderLines::new(endless);
    let error = shell.run(&mut lines, &mut BufferOutput::default()).await.unwrap_err();
    assert_eq!(error.message(), "a line of the input is longer than 268435456 bytes");
}

#[tokio::test]
async fn cells_give_a_terminal_no_commands() {
    let script = "create table t (a);\n\
        insert into t values ('r', 'a', '\u{1b}[2J\u{9b}\u{fc}');\nselect * from t;\nselect \u{1b} from t;\n";
    for (terminal, shown) in
        [(true, "\\x1b[2J\\x9b\u{fc}".to_owned()), (false, "\u{1b}[2J\u{9b}\u{fc}".to_owned())]
    {
        let (mut results, mut notices) = (Vec::new(), Vec::new());
        let mut out =
            ConsoleOutput::new(&mut results, &mut notices).with_terminals(terminal, terminal);
        let store = Arc::new(MemoryCells::new(TimestampSource::manual(1_000_000)));
        let session = Session::new(store, Arc::new(NoFiles), SessionOptions::default());
        let mut shell = Shell::new(session, ShellOptions::default());
        shell.run(&mut TextLines::new(script), &mut out).await.unwrap();
        let results = String::from_utf8(results).unwrap();
        assert!(results.starts_with(&format!("r\ta\t{shown}\nHypertable CRITICAL")), "{results}");
        assert_eq!(results.contains('\u{1b}'), !terminal, "{results}");
    }
}

#[tokio::test]
async fn a_byte_order_mark_before_a_script_is_left_out() {
    let mut out = BufferOutput::default();
    let script = "\u{feff}status;\nstatus;\n";
    assert_eq!(shell_over(&mut TextLines::new(script), &mut out).await, 0);
    assert_eq!(out.results, b"Hypertable OK\nHypertable OK\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_fails_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let mut cells = "#row\tcolumn\tvalue\n".to_owned();
    (0..50_000).for_each(|i| cells.push_str(&format!("r{i}\ta\tv\n")));
    cells.push_str("last\tnone\tv\n");
    fs::write(folder.path().join("cells.tsv"), cells).unwrap();
    let script = "create table t (a);\nload data infile 'cells.tsv' into table t;\n";
    let run = run_in(folder.path(), script).await;
    let error = "cells.tsv: line 50002: no column family 'none'";
    assert_eq!(run.results(), format!("Hypertable CRITICAL - {error} (nothing was loaded)\n"));
    assert_eq!(run.code, EXIT_ERROR);

    // In a shell that goes on: the table is as it was.
    let store = Arc::new(MemoryCells::default());
    let files = Arc::new(LocalFiles::new(folder.path()));
    let mut session = Session::new(store, files, SessionOptions::default());
    let mut out = BufferOutput::default();
    session.run_text("create table t (a)", &mut out).await.unwrap();
    let load = "load data infile 'cells.tsv' into table t";
    let error = session.run_text(load, &mut out).await.unwrap_err();
    assert_eq!(error.sqlstate(), "42703");
    session.run_text("select * from t", &mut out).await.unwrap();
    assert_eq!(out.results, b"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_hold_a_header_and_the_cells() {
    let folder = TempDir::new().unwrap();
    let script = "create table t (a);\n\
        insert into t values ('1970-01-01 00:00:01', 'r', 'a:q', 'v'), ('s', 'a', 'w');\n\
        select * from t into file 'plain.tsv';\n\
        select * from t into file 'file://stamped.gz' display_timestamps;\n\
        select * from t into file 'keys' keys_only;\n\
        dump table t into file 'dump';\n";
    assert_eq!(run_in(folder.path(), script).await.results(), "");
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("plain.tsv"), b"#row\tcolumn\tvalue\nr\ta:q\tv\ns\ta\tw\n");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&read("stamped.gz")[..]).read_to_string(&mut text).unwrap();
    let stamped = "#timestamp\trow\tcolumn\tvalue\n1000000000\tr\ta:q\tv\n1000000\ts\ta\tw\n";
    assert_eq!(text, stamped);
    assert_eq!(read("keys"), b"#row\nr\ns\n");
    assert_eq!(read("dump"), stamped.as_bytes());
}

#[test]
fn a_statement_may_run_on_any_thread() {
    fn check(future: impl Future + Send) {
        drop(future);
    }
    let store = Arc::new(MemoryCells::default());
    let mut session = Session::new(store, Arc::new(NoFiles), SessionOptions::default());
    let mut out = BufferOutput::default();
    check(session.run_text("select * from t", &mut out));
}

#[tokio::test]
async fn a_session_without_files_opens_none() {
    let store = Arc::new(MemoryCells::default());
    let mut session = Session::new(store, Arc::new(NoFiles), SessionOptions::default());
    let mut out = BufferOutput::default();
    session.run_text("create table t (a)", &mut out).await.unwrap();
    for statement in [
        "load data infile '/etc/hostname' into table t",
        "select * from t into file 'x'",
        "dump table t into file 'x'",
        "create table u with 'schema.xml'",
    ] {
        let error = session.run_text(statement, &mut out).await.unwrap_err();
        assert_eq!(error.kind(), stoa_error::ErrorKind::Forbidden, "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gzipped_logs_load_the_same() {
    let folder = TempDir::new().unwrap();
    let log = query_log(3000, "AnonID\tQuery\tItemRank\tClickURL");
    let file = fs::File::create(folder.path().join("a.tsv.gz")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    gzip.write_all(log.as_bytes()).unwrap();
    gzip.finish().unwrap();
    let run = run_in(folder.path(), &SEED.replace("a.tsv", "a.tsv.gz")).await;
    assert!(run.results() == oracle(&log), "the answer differs from the oracle's");
}
