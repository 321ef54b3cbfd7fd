//! Hypertable's shell over cells in memory: `cargo run -p stoa-hql --example shell -- --batch`.
//!
//! What is loaded is gone at the end. The shell over tables is `stoa hql`.

use std::io::{BufReader, BufWriter, IsTerminal, stderr, stdin, stdout};
use std::process::exit;
use std::sync::Arc;

use stoa_error::Result;
use stoa_hql::{
    ConsoleOutput, LocalFiles, MemoryCells, Output, ReaderLines, Session, SessionOptions, Shell,
    ShellOptions, TimestampFormat, Zone, error_text,
};

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
    let code = match runtime {
        Ok(runtime) => runtime.block_on(run()),
        Err(e) => Err(stoa_error::Error::unavailable("no runtime").with_source(e)),
    };
    exit(code.unwrap_or_else(|e| {
        eprint!("{}", error_text(&e));
        1
    }));
}

async fn run() -> Result<i32> {
    let mut shell = ShellOptions { allow_system: true, ..ShellOptions::default() };
    let mut session = SessionOptions::default();
    for argument in std::env::args().skip(1) {
        match argument.split_once('=').unwrap_or((&argument, "")) {
            ("--batch", _) => shell.batch = true,
            ("--test-mode", _) => {
                shell.test_mode = true;
                session.silent = true;
            }
            ("--silent", _) => session.silent = true,
            ("--utc", _) => session.zone = Zone::Utc,
            ("--timestamp-format", name) => {
                session.timestamp_format = TimestampFormat::from_name(name)?;
            }
            _ => eprintln!("unknown option {argument}"),
        }
    }
    let store = Arc::new(MemoryCells::default());
    let session = Session::new(store, Arc::new(LocalFiles::new(".")), session);
    let mut out = ConsoleOutput::new(BufWriter::new(stdout()), stderr())
        .with_terminals(stdout().is_terminal(), stderr().is_terminal());
    let mut lines = ReaderLines::new(BufReader::new(stdin()));
    let code = Shell::new(session, shell).run(&mut lines, &mut out).await?;
    out.progress("")?;
    Ok(code)
}
