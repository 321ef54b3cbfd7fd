//! Statements that only this protocol knows: cursors, and prepared statements by name.
//!
//! In: a statement's text. Out: a [`Command`], or `None` for what the engine parses.

use stoa_error::{Error, Result};
use stoa_sql::lexer::{Lexer, Token, TokenKind};

use crate::scroll::Direction;

/// A statement about cursors or prepared statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `DECLARE name … CURSOR [WITH HOLD] FOR query`
    Declare { name: String, options: CursorOptions, query: String },
    /// `FETCH [direction] [FROM] name`, `MOVE` likewise.
    Fetch { name: String, direction: Direction, discard: bool },
    /// `CLOSE name`; `None` = all.
    Close { name: Option<String> },
    /// `PREPARE name [(types)] AS statement`
    Prepare { name: String, types: Vec<String>, statement: String },
    /// `EXECUTE name [(arguments)]`; the arguments' text.
    Execute { name: String, arguments: String },
    /// `DEALLOCATE name`; `None` = all.
    Deallocate { name: Option<String> },
    /// `DISCARD ALL`
    DiscardAll,
}

/// What `DECLARE` says of a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CursorOptions {
    /// `WITH HOLD`
    pub(crate) hold: bool,
    /// `BINARY`
    pub(crate) binary: bool,
    /// `SCROLL`
    pub(crate) scroll: bool,
}

impl Command {
    /// Reads a statement.
    ///
    /// # Errors
    /// It begins like one of these, but goes on otherwise (42601).
    pub(crate) fn parse(text: &str) -> Result<Option<Self>> {
        let mut words = Words::new(text);
        let word = words.keyword();
        let command = match word.as_str() {
            "DECLARE" => declare(&mut words),
            "FETCH" => fetch(&mut words, false),
            "MOVE" => fetch(&mut words, true),
            "CLOSE" => name_or_all(&mut words).map(|name| Self::Close { name }),
            "PREPARE" => prepare(&mut words),
            "EXECUTE" => execute(&mut words),
            "DEALLOCATE" => {
                words.accept("PREPARE");
                name_or_all(&mut words).map(|name| Self::Deallocate { name })
            }
            "DISCARD" if words.accept("ALL") => Some(Self::DiscardAll),
            _ => return Ok(None),
        };
        match command {
            Some(command) => Ok(Some(command)),
            None => Err(Error::invalid(format!("syntax error in {word}"))
                .with_sqlstate("42601")
                .with_position(words.position())
                .with_hint(usage(&word))),
        }
    }
}

fn usage(word: &str) -> &'static str {
    match word {
        "DECLARE" => "DECLARE name [BINARY] [[NO] SCROLL] CURSOR [WITH HOLD] FOR query",
        "FETCH" | "MOVE" => {
            "FETCH [NEXT | PRIOR | FIRST | LAST | ABSOLUTE n | RELATIVE n | n | ALL | \
             FORWARD [n | ALL] | BACKWARD [n | ALL]] [FROM] name"
        }
        "CLOSE" => "CLOSE name | ALL",
        "PREPARE" => "PREPARE name [(type, …)] AS statement",
        "EXECUTE" => "EXECUTE name [(value, …)]",
        "DEALLOCATE" => "DEALLOCATE [PREPARE] name | ALL",
        _ => "DISCARD ALL",
    }
}

fn declare(words: &mut Words<'_>) -> Option<Command> {
    let name = words.name()?;
    let mut options = CursorOptions::default();
    loop {
        match words.keyword().as_str() {
            "BINARY" => options.binary = true,
            "INSENSITIVE" | "ASENSITIVE" => {}
            "NO" => words.accept("SCROLL").then_some(())?,
            "SCROLL" => options.scroll = true,
            "CURSOR" => break,
            _ => return None,
        }
    }
    loop {
        match words.keyword().as_str() {
            "WITH" => options.hold = words.accept("HOLD").then_some(true)?,
            "WITHOUT" => words.accept("HOLD").then_some(())?,
            "FOR" => break,
            _ => return None,
        }
    }
    let query = words.rest().trim();
    (!query.is_empty()).then(|| Command::Declare { name, options, query: query.to_owned() })
}

fn fetch(words: &mut Words<'_>, discard: bool) -> Option<Command> {
    let direction = direction(words)?;
    if !words.accept("FROM") {
        words.accept("IN");
    }
    let name = words.name()?;
    words.is_at_end().then_some(Command::Fetch { name, direction, discard })
}

fn direction(words: &mut Words<'_>) -> Option<Direction> {
    let before = words.at;
    // A negative count goes the other way.
    let forward = |count: i64| match usize::try_from(count.unsigned_abs()) {
        Ok(rows) if count < 0 => Direction::Backward(rows),
        Ok(rows) => Direction::Forward(rows),
        Err(_) => Direction::Forward(usize::MAX),
    };
    Some(match words.keyword().as_str() {
        "NEXT" => Direction::Forward(1),
        "PRIOR" => Direction::Backward(1),
        "FIRST" => Direction::Absolute(1),
        "LAST" => Direction::Absolute(-1),
        "ABSOLUTE" => Direction::Absolute(words.number()?),
        "RELATIVE" => Direction::Relative(words.number()?),
        "ALL" => Direction::Forward(usize::MAX),
        "FORWARD" if words.accept("ALL") => Direction::Forward(usize::MAX),
        "FORWARD" => forward(words.number().unwrap_or(1)),
        "BACKWARD" if words.accept("ALL") => Direction::Backward(usize::MAX),
        "BACKWARD" => forward(words.number().unwrap_or(1).saturating_neg()),
        _ => {
            words.at = before;
            forward(words.number().unwrap_or(1))
        }
    })
}

fn name_or_all(words: &mut Words<'_>) -> Option<Option<String>> {
    let name = if words.accept("ALL") { None } else { Some(words.name()?) };
    words.is_at_end().then_some(name)
}

fn prepare(words: &mut Words<'_>) -> Option<Command> {
    let name = words.name()?;
    let types = match words.parenthesised() {
        Some(types) => items(types).into_iter().map(str::to_ascii_lowercase).collect(),
        None => Vec::new(),
    };
    words.accept("AS").then_some(())?;
    let statement = words.rest().trim().to_owned();
    (!statement.is_empty()).then_some(Command::Prepare { name, types, statement })
}

fn execute(words: &mut Words<'_>) -> Option<Command> {
    let name = words.name()?;
    let arguments = words.parenthesised().unwrap_or_default().to_owned();
    words.is_at_end().then_some(Command::Execute { name, arguments })
}

/// The parts of a list between its commas, without blanks around them; none of a list that is empty.
pub(crate) fn items(list: &str) -> Vec<&str> {
    let (mut items, mut depth, mut begin) = (Vec::new(), 0_usize, 0);
    for token in Lexer::new(list) {
        if token.is_sign('(') || token.is_sign('[') {
            depth += 1;
        } else if token.is_sign(')') || token.is_sign(']') {
            depth = depth.saturating_sub(1);
        } else if token.is_sign(',') && depth == 0 {
            items.push(list.get(begin..token.at).unwrap_or_default().trim());
            begin = token.end();
        }
    }
    items.push(list.get(begin..).unwrap_or_default().trim());
    match items.as_slice() {
        [""] => Vec::new(),
        _ => items,
    }
}

/// Reads a statement word by word; blanks and comments are skipped.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Characters before the place reached, plus 1.
    fn position(&self) -> usize {
        self.text.get(..self.at).map_or(0, |before| before.chars().count()) + 1
    }

    fn skip_blanks(&mut self) {
        let mut tokens = Lexer::new(self.rest());
        self.at = match tokens.next_significant() {
            Some(token) => self.at + token.at,
            None => self.text.len(),
        };
    }

    fn is_at_end(&mut self) -> bool {
        Lexer::new(self.rest()).filter(Token::is_significant).all(|token| token.is_sign(';'))
    }

    /// The next word, or number; empty where none is next.
    fn word(&mut self) -> &'a str {
        self.skip_blanks();
        match Lexer::new(self.rest()).next() {
            Some(token) if matches!(token.kind, TokenKind::Word | TokenKind::Number) => {
                self.at += token.text.len();
                token.text
            }
            _ => "",
        }
    }

    /// The next word in upper case; empty where none is next.
    fn keyword(&mut self) -> String {
        self.word().to_ascii_uppercase()
    }

    /// Takes the next word if it is `wanted`.
    fn accept(&mut self, wanted: &str) -> bool {
        let before = self.at;
        let found = self.word().eq_ignore_ascii_case(wanted);
        if !found {
            self.at = before;
        }
        found
    }

    /// A whole number, which may have a sign.
    fn number(&mut self) -> Option<i64> {
        let before = self.at;
        self.skip_blanks();
        let sign =
            Lexer::new(self.rest()).next().filter(|token| token.is_sign('-') || token.is_sign('+'));
        self.at += sign.map_or(0, |token| token.text.len());
        let number = self.word().parse::<i64>().ok();
        if number.is_none() {
            self.at = before;
        }
        let is_negative = sign.is_some_and(|token| token.is_sign('-'));
        number.map(|number| if is_negative { -number } else { number })
    }

    /// An identifier: in lower case, or as quoted.
    fn name(&mut self) -> Option<String> {
        self.skip_blanks();
        let Some(mut quoted) = self.rest().strip_prefix('"') else {
            let word = self.word();
            return (!word.is_empty()).then(|| word.to_lowercase());
        };
        let start = quoted.len();
        let mut name = String::new();
        loop {
            let end = quoted.find('"')?;
            name.push_str(&quoted[..end]);
            quoted = &quoted[end + 1..];
            match quoted.strip_prefix('"') {
                Some(rest) => {
                    name.push('"');
                    quoted = rest;
                }
                None => break,
            }
        }
        self.at += 1 + start - quoted.len();
        Some(name)
    }

    /// What stands in the parentheses that are next; without any nothing is taken.
    fn parenthesised(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let rest = self.rest();
        if !rest.starts_with('(') {
            return None;
        }
        let mut depth = 0;
        for token in Lexer::new(rest) {
            if token.is_sign('(') {
                depth += 1;
            } else if token.is_sign(')') {
                depth -= 1;
            }
            if depth == 0 {
                self.at += token.end();
                return rest.get(1..token.at).filter(|_| token.is_sign(')'));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Command {
        Command::parse(text).unwrap().unwrap()
    }

    #[test]
    fn types_of_a_prepared_statement_may_be_left_out() {
        let prepare = |types: &[&str]| Command::Prepare {
            name: "p".to_owned(),
            types: types.iter().map(|name| (*name).to_owned()).collect(),
            statement: "SELECT (1)".to_owned(),
        };
        assert_eq!(read("PREPARE p AS SELECT (1)"), prepare(&[]));
        assert_eq!(read("PREPARE p (int, text) AS SELECT (1)"), prepare(&["int", "text"]));
        let execute = Command::Execute { name: "p".to_owned(), arguments: "f(')'), 2".to_owned() };
        assert_eq!(read("EXECUTE p (f(')'), 2);"), execute);
    }

    #[test]
    fn cursors_are_read() {
        assert_eq!(
            read("declare \"My \"\"C\" no scroll cursor with hold for select 1"),
            Command::Declare {
                name: "My \"C".to_owned(),
                options: CursorOptions { hold: true, binary: false, scroll: false },
                query: "select 1".to_owned()
            }
        );
        let fetch = |direction| Command::Fetch { name: "c".to_owned(), direction, discard: false };
        for (text, direction) in [
            ("FETCH c", Direction::Forward(1)),
            ("FETCH FORWARD 100 FROM C;", Direction::Forward(100)),
            ("FETCH ALL IN c", Direction::Forward(usize::MAX)),
            ("FETCH 5 c", Direction::Forward(5)),
            ("FETCH -5 c", Direction::Backward(5)),
            ("FETCH BACKWARD 1 FROM c", Direction::Backward(1)),
            ("FETCH BACKWARD ALL FROM c", Direction::Backward(usize::MAX)),
            ("FETCH BACKWARD c", Direction::Backward(1)),
            ("FETCH PRIOR c", Direction::Backward(1)),
            ("FETCH LAST c", Direction::Absolute(-1)),
            ("FETCH ABSOLUTE - 2 c", Direction::Absolute(-2)),
            ("FETCH RELATIVE +2 c", Direction::Relative(2)),
        ] {
            assert_eq!(read(text), fetch(direction), "{text}");
        }
        assert_eq!(read("/* x */ CLOSE -- y\n ALL"), Command::Close { name: None });
        assert_eq!(Command::parse("FETCH ABSOLUTE FROM c").unwrap_err().sqlstate(), "42601");
    }

    #[test]
    fn lists_have_items() {
        assert_eq!(items(" int, numeric(10, 2) ,int[] "), ["int", "numeric(10, 2)", "int[]"]);
        assert_eq!(
            items("f(1, 2), ARRAY[1, 2], 'a, b' -- c, d"),
            ["f(1, 2)", "ARRAY[1, 2]", "'a, b' -- c, d"]
        );
        assert_eq!(items("  "), Vec::<&str>::new());
        assert_eq!(items("1,"), ["1", ""]);
    }

    #[test]
    fn prepared_statements_are_read() {
        assert_eq!(
            read("PREPARE p (int, text) AS SELECT $1"),
            Command::Prepare {
                name: "p".to_owned(),
                types: vec!["int".to_owned(), "text".to_owned()],
                statement: "SELECT $1".to_owned()
            }
        );
        assert_eq!(
            read("EXECUTE p (1, ')')"),
            Command::Execute { name: "p".to_owned(), arguments: "1, ')'".to_owned() }
        );
        assert_eq!(
            read("DEALLOCATE PREPARE p"),
            Command::Deallocate { name: Some("p".to_owned()) }
        );
    }

    #[test]
    fn other_statements_are_the_engines() {
        for text in ["", "SELECT 1", "COMMIT", "-- only a comment", "DISCARD PLANS", "ä"] {
            assert_eq!(Command::parse(text).unwrap(), None, "{text}");
        }
    }
}
