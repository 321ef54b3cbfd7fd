//! How commands fail, and how users read it.
//!
//! ```text
//! error: table "ad_reprot" does not exist
//! detail: …
//! hint: did you mean ad_report?
//! code: 42P01
//! ```
//! Exit codes: 0 done, 1 failed, 2 the command line or a setting is wrong. A panic is a bug: it is
//! shown as an error of code XX000, never as a raw trace.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use stoa_error::Error;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// The command line or a setting is wrong.
    Usage(Error),
    /// Something went wrong.
    Failed(Error),
    /// Something went wrong, and the user has read about it already.
    Reported,
    /// The process is to end with this code; nothing is to be said.
    Exit(i32),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Failure {
    /// Shows the failure, if that is still to do, and gives the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            // Whoever read our output has seen enough (`stoa sql … | head`).
            Self::Failed(error) if is_closed_output(&error) => ExitCode::SUCCESS,
            Self::Failed(error) => {
                print_error(&error, None);
                ExitCode::from(1)
            }
            Self::Usage(error) => {
                print_error(&error, None);
                ExitCode::from(2)
            }
            Self::Reported => ExitCode::from(1),
            // As the operating system does it: the lowest eight bits.
            Self::Exit(code) => ExitCode::from(code as u8),
        }
    }
}

/// Writes an error to stderr; with the statement's text, also the line it points at.
pub fn print_error(error: &Error, statement: Option<&str>) {
    let stderr = std::io::stderr();
    let colour = stderr.is_terminal();
    let text = render(error, statement, colour);
    // Nothing can be done where even stderr is closed.
    let _ = stderr.lock().write_all(text.as_bytes());
}

fn render(error: &Error, statement: Option<&str>, colour: bool) -> String {
    let (red, plain) = if colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    let mut text = format!("{red}error:{plain} {}\n", error.message_with_sources());
    if let (Some(position), Some(statement)) = (error.position(), statement) {
        text.push_str(&point_at(statement, position));
    }
    if let Some(detail) = error.detail() {
        text.push_str(&format!("detail: {detail}\n"));
    }
    if let Some(hint) = error.hint() {
        text.push_str(&format!("hint: {hint}\n"));
    }
    text.push_str(&format!("code: {}\n", error.sqlstate()));
    text
}

/// The line that holds character `position` (from 1), with a mark below it.
fn point_at(statement: &str, position: usize) -> String {
    let before: String = statement.chars().take(position.saturating_sub(1)).collect();
    let number = before.matches('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count());
    let Some(line) = statement.lines().nth(number) else { return String::new() };
    let head = format!("line {}: ", number + 1);
    let space = " ".repeat(head.len() + column);
    format!("{head}{}\n{space}^\n", line.replace('\t', " "))
}

/// Whether an error says that nobody reads our output any more.
pub fn is_closed_output(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    source
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Makes panics readable. The backtrace is shown if `RUST_BACKTRACE` asks for it.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let what = info.payload_as_str().unwrap_or("a bug without a message");
        let place = info.location().map_or("unknown".into(), ToString::to_string);
        let error = Error::internal(format!("internal error: {what}"))
            .with_detail(format!("at {place}, version {}", crate::VERSION))
            .with_hint("this is a bug in Stoa; please report it with these lines");
        print_error(&error, None);
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            eprintln!("{backtrace}");
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_place_detail_hint_and_code() {
        let error = Error::not_found("no column b")
            .with_position(13)
            .with_detail("the table has a")
            .with_hint("did you mean a?")
            .with_sqlstate("42703");
        assert_eq!(
            render(&error, Some("SELECT\n  a, b"), false),
            "error: no column b\nline 2:   a, b\n             ^\n\
             detail: the table has a\nhint: did you mean a?\ncode: 42703\n"
        );
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let closed = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(is_closed_output(&Error::unavailable("cannot write output").with_source(closed)));
        assert!(!is_closed_output(&Error::unavailable("cannot write output")));
    }
}
