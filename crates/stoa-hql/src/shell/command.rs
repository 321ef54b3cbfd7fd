//! What the shell does itself.

use std::time::Duration;

/// A command of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Ends the shell with this code.
    Exit(i32),
    /// Prints what was typed since the last statement.
    Print,
    /// Forgets it.
    Clear,
    /// Runs the lines of a file.
    Source(String),
    /// Runs a command of the operating system.
    System(String),
    /// Waits.
    Pause(Duration),
    /// Says what statements there are, or more about one.
    Help(String),
}

impl Command {
    /// The command that a whole line is, without a semicolon. Within a statement only those with a
    /// backslash are: other words may belong to the statement.
    pub(super) fn of_line(line: &str, within_statement: bool) -> Option<Self> {
        let line = line.trim();
        let is_short = line.starts_with('\\');
        if !is_short && (within_statement || line.contains(';')) {
            return None;
        }
        Self::of_statement(line)
    }

    /// The command that a statement is, if it is one.
    pub(super) fn of_statement(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches(';').trim_end();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        match (word.to_ascii_lowercase().as_str(), rest) {
            ("quit" | "\\q", "") => Some(Self::Exit(0)),
            ("exit", "") => Some(Self::Exit(0)),
            ("exit", code) => code.parse().ok().map(Self::Exit),
            ("print" | "\\p", "") => Some(Self::Print),
            ("clear" | "\\c", "") => Some(Self::Clear),
            ("source" | ".", file) if !file.is_empty() => Some(Self::Source(unquoted(file))),
            ("system" | "\\!", command) if !command.is_empty() => {
                Some(Self::System(command.to_owned()))
            }
            ("help" | "?" | "\\h", topic) => Some(Self::Help(topic.to_owned())),
            ("pause", seconds) => {
                let seconds: f64 = seconds.parse().ok()?;
                Duration::try_from_secs_f64(seconds).ok().map(Self::Pause)
            }
            _ => None,
        }
    }
}

fn unquoted(text: &str) -> String {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<Command>) {
        assert_eq!(Command::of_line(line, false), expected, "{line}");
    }

    #[test]
    fn commands_need_no_semicolon() {
        check(" quit ", Some(Command::Exit(0)));
        check("\\q", Some(Command::Exit(0)));
        check("exit 3", Some(Command::Exit(3)));
        check("source 'a.hql'", Some(Command::Source("a.hql".into())));
        check(". a.hql", Some(Command::Source("a.hql".into())));
        check("pause 2", Some(Command::Pause(Duration::from_secs(2))));
        check("help select", Some(Command::Help("select".into())));
        check("?", Some(Command::Help(String::new())));
        check("\\! ls; pwd", Some(Command::System("ls; pwd".into())));
        for line in ["select * from t; quit", "exit now", "pause a while", "status", ""] {
            check(line, None);
        }
        assert_eq!(Command::of_line("quit", true), None);
        assert_eq!(Command::of_line("\\c", true), Some(Command::Clear));
        assert_eq!(Command::of_statement("quit"), Some(Command::Exit(0)));
    }
}
