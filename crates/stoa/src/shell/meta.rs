//! Commands of the shell itself: lines that start with a backslash.

use std::time::Duration;

use clap::ValueEnum;
use stoa_error::{Error, Result};

use super::format::Format;

/// A parsed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meta {
    /// `\d`, `\dt`, `\dn`, …: a statement to run.
    Run(String),
    /// `\timing [on|off]`.
    Timing(Option<bool>),
    /// `\x [on|off]`.
    Expanded(Option<bool>),
    /// `\format NAME`.
    Format(Format),
    /// `\i FILE`.
    Include(String),
    /// `\echo TEXT`.
    Echo(String),
    /// `\g [FILE]`, `\gx [FILE]`: run what was typed, or the last statement again.
    Go { expanded: bool, to: Option<String> },
    /// `\watch [SECONDS] [c=TIMES]`.
    Watch { pause: Duration, times: Option<u64> },
    /// `\e [FILE]`.
    Edit(Option<String>),
    /// `\o [FILE]`.
    Output(Option<String>),
    /// `\p`.
    Print,
    /// `\r`.
    Reset,
    /// `\pset pager [on|off]`.
    Pager(Option<bool>),
    /// `\conninfo`.
    Place,
    /// `\?`.
    Help,
    /// `\q`.
    Quit,
}

pub(super) const HELP: &str = r"Statements end with a semicolon or \g and can take several lines.

  \d             list tables
  \d TABLE       columns of a table          \d+ TABLE   the statement that creates it
  \dt [PATTERN]  list tables (% matches any text, _ one character)
  \dn            list namespaces
  \df TABLE      data files of a table       \ds TABLE   snapshots of a table
  \x [on|off]    one line per value
  \timing [on|off]  show how long statements take
  \format table|csv|tsv|jsonl
  \g [FILE]      run the statement (again); rows go to FILE, or to a command: \g |COMMAND
  \gx [FILE]     as \g, one line per value
  \watch [SECONDS] [c=TIMES]  run the statement again and again (2 seconds), until Ctrl-C
  \e [FILE]      edit the statement, or a file, with $EDITOR
  \p             print the statement typed so far; \r discards it
  \o [FILE]      rows go to FILE or |COMMAND from now on; without one, to the screen again
  \pset pager [on|off]  long results go through $PAGER (less)
  \i FILE        run statements from a file
  \echo TEXT     print a text
  \conninfo      where statements run
  \q             quit (also exit, quit, Ctrl-D)

Ctrl-C cancels the running statement, or discards the one being typed.
Tab completes keywords, tables and columns.
";

/// Their names, for completion and for those that are misspelt.
pub(super) const NAMES: [&str; 24] = [
    "\\d",
    "\\d+",
    "\\dt",
    "\\dn",
    "\\df",
    "\\ds",
    "\\x",
    "\\timing",
    "\\format",
    "\\pset",
    "\\g",
    "\\gx",
    "\\watch",
    "\\e",
    "\\p",
    "\\r",
    "\\o",
    "\\i",
    "\\echo",
    "\\conninfo",
    "\\?",
    "\\h",
    "\\q",
    "\\quit",
];

/// Parses a line that starts with a backslash; a semicolon at its end is passed over.
pub(super) fn parse(line: &str) -> Result<Meta> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim();
    let run = |text: String| Ok(Meta::Run(text));
    let table = || match argument {
        "" => Err(Error::invalid(format!("{name} needs the name of a table"))),
        table => Ok(table),
    };
    match name {
        "\\d" | "\\dt" if argument.is_empty() => run("SHOW TABLES".into()),
        "\\dt" => run(format!("SHOW TABLES LIKE '{}'", argument.replace('\'', "''"))),
        "\\d" => run(format!("DESCRIBE {argument}")),
        "\\d+" => run(format!("SHOW CREATE TABLE {}", table()?)),
        "\\dn" => run("SHOW SCHEMAS".into()),
        "\\df" => run(format!("SHOW FILES IN {}", table()?)),
        "\\ds" => run(format!("SHOW SNAPSHOTS IN {}", table()?)),
        "\\x" => on_or_off(name, argument).map(Meta::Expanded),
        "\\timing" => on_or_off(name, argument).map(Meta::Timing),
        "\\format" => format(argument).map(Meta::Format),
        "\\pset" if argument.split_whitespace().next() == Some("pager") => {
            on_or_off("\\pset pager", argument["pager".len()..].trim()).map(Meta::Pager)
        }
        "\\pset" => {
            format(argument.strip_prefix("format").unwrap_or(argument).trim()).map(Meta::Format)
        }
        "\\g" | "\\gx" => Ok(Meta::Go { expanded: name == "\\gx", to: target(argument) }),
        "\\watch" => watch(argument),
        "\\e" | "\\edit" => Ok(Meta::Edit(target(argument))),
        "\\o" | "\\out" => Ok(Meta::Output(target(argument))),
        "\\p" => Ok(Meta::Print),
        "\\r" => Ok(Meta::Reset),
        "\\i" if argument.is_empty() => Err(Error::invalid("\\i needs the name of a file")),
        "\\i" => Ok(Meta::Include(unquoted(argument))),
        "\\echo" => Ok(Meta::Echo(unquoted(argument))),
        "\\conninfo" => Ok(Meta::Place),
        "\\?" | "\\h" | "\\help" => Ok(Meta::Help),
        "\\q" | "\\quit" | "\\exit" => Ok(Meta::Quit),
        _ => {
            let near = NAMES.iter().min_by_key(|known| strsim::levenshtein(known, name));
            let error = Error::invalid(format!("unknown command {name}")).with_sqlstate("42601");
            let near = near.filter(|near| strsim::levenshtein(near, name) < 3);
            Err(error.with_hint(match near {
                Some(near) => format!("did you mean {near}? \\? lists all"),
                None => "\\? lists all".into(),
            }))
        }
    }
}

fn on_or_off(name: &str, argument: &str) -> Result<Option<bool>> {
    match argument {
        "" => Ok(None),
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        other => Err(Error::invalid(format!("{name} takes on or off, not {other:?}"))),
    }
}

fn format(name: &str) -> Result<Format> {
    Format::from_str(name, true).map_err(|_| {
        Error::invalid(format!("unknown format {name:?}")).with_hint("use table, csv, tsv or jsonl")
    })
}

/// A file, or a command after `|`, which keeps its quotes.
fn target(argument: &str) -> Option<String> {
    match argument {
        "" => None,
        command if command.starts_with('|') => Some(command.to_owned()),
        file => Some(unquoted(file)),
    }
}

/// The longest pause of `\watch`.
const PAUSE_SECONDS_MAX: f64 = 86_400.0;

/// `\watch [SECONDS | i=SECONDS] [c=TIMES]`, as psql has it.
fn watch(argument: &str) -> Result<Meta> {
    let wrong = |word: &str| {
        Error::invalid(format!("\\watch: {word:?} is neither seconds nor c=TIMES"))
            .with_hint("write \\watch 5, or \\watch 5 c=10 for ten times")
    };
    let (mut pause, mut times) = (Duration::from_secs(2), None);
    for word in argument.split_whitespace() {
        if let Some(count) = word.strip_prefix("c=") {
            times = Some(count.parse().ok().filter(|count| *count > 0).ok_or_else(|| wrong(word))?);
            continue;
        }
        let seconds: f64 =
            word.strip_prefix("i=").unwrap_or(word).parse().map_err(|_| wrong(word))?;
        if !(0.0..=PAUSE_SECONDS_MAX).contains(&seconds) {
            return Err(wrong(word));
        }
        pause = Duration::from_secs_f64(seconds);
    }
    Ok(Meta::Watch { pause, times })
}

fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    inner.map_or_else(|| text.to_owned(), |inner| inner.replace("''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_take_arguments() {
        let run = |text: &str| Meta::Run(text.to_owned());
        for (line, expected) in [
            ("\\d", run("SHOW TABLES")),
            ("\\d ad_report;", run("DESCRIBE ad_report")),
            ("\\dt  ad%", run("SHOW TABLES LIKE 'ad%'")),
            ("\\x", Meta::Expanded(None)),
            ("\\timing on", Meta::Timing(Some(true))),
            ("\\format CSV", Meta::Format(Format::Csv)),
            ("\\format json", Meta::Format(Format::Jsonl)),
            ("\\pset format tsv", Meta::Format(Format::Tsv)),
            ("\\i 'my file.sql'", Meta::Include("my file.sql".into())),
            ("\\g", Meta::Go { expanded: false, to: None }),
            ("\\gx 'a b'", Meta::Go { expanded: true, to: Some("a b".into()) }),
            ("\\o |tr 'a' 'b'", Meta::Output(Some("|tr 'a' 'b'".into()))),
            ("\\watch", Meta::Watch { pause: Duration::from_secs(2), times: None }),
            (
                "\\watch i=0.5 c=3",
                Meta::Watch { pause: Duration::from_millis(500), times: Some(3) },
            ),
            ("\\pset pager off", Meta::Pager(Some(false))),
            ("\\e", Meta::Edit(None)),
            ("\\q", Meta::Quit),
        ] {
            assert_eq!(parse(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn wrong_commands_say_what_is_right() {
        let error = parse("\\timng").unwrap_err();
        assert_eq!(error.message(), "unknown command \\timng");
        assert_eq!(error.hint(), Some("did you mean \\timing? \\? lists all"));
        assert!(parse("\\x maybe").is_err());
        assert!(parse("\\format xml").is_err());
        for wrong in ["\\watch often", "\\watch -1", "\\watch c=0", "\\watch nan"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
