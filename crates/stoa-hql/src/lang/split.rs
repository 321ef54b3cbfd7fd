//! Cuts what is typed into statements.

/// Collects lines and hands out statements: text up to a `;` that is not within quotes, a regular
/// expression or a comment. Lines that start with `#` are comments.
#[derive(Debug, Default)]
pub struct Splitter {
    /// What came since the last statement.
    text: String,
    /// How far `text` was looked through.
    at: usize,
    state: State,
    /// The last character that is not blank, for what `/` means.
    last: Option<char>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Plain,
    Quoted(char),
    /// Between slashes; whether the last character was a backslash.
    Regexp(bool),
    Comment,
}

impl Splitter {
    /// A splitter that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text, usually a line with its end.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The next statement, without its semicolon and the blanks around it; none if it is not
    /// complete yet. Empty statements are left out.
    pub fn next_statement(&mut self) -> Option<String> {
        while let Some(end) = self.find_end() {
            let statement = without_comments(&self.text[..end]).to_owned();
            self.text.drain(..=end);
            self.at = 0;
            self.last = None;
            if !is_blank(&statement) {
                return Some(statement);
            }
        }
        None
    }

    /// What is left when no more text comes: a statement without semicolon. None if there is
    /// nothing but blanks and comments.
    pub fn take_rest(&mut self) -> Option<String> {
        let text = std::mem::take(self).text;
        let rest = without_comments(&text);
        (!is_blank(rest)).then(|| rest.to_owned())
    }

    /// Whether a statement has begun.
    pub fn is_within_statement(&self) -> bool {
        !is_blank(&self.text)
    }

    /// What came since the last statement.
    pub fn pending(&self) -> &str {
        &self.text
    }

    fn find_end(&mut self) -> Option<usize> {
        let from = self.at;
        for (offset, c) in self.text[from..].char_indices() {
            self.at = from + offset + c.len_utf8();
            self.state = match (self.state, c) {
                (State::Plain, ';') => return Some(from + offset),
                (State::Plain, '\'' | '"') => State::Quoted(c),
                (State::Plain, '#') => State::Comment,
                (State::Plain, '/') if matches!(self.last, Some(':' | '~')) => State::Regexp(false),
                (State::Quoted(quote), c) if c == quote => State::Plain,
                (State::Regexp(false), '/') => State::Plain,
                (State::Regexp(escaped), c) => State::Regexp(c == '\\' && !escaped),
                (State::Comment, '\n') => State::Plain,
                (state, _) => state,
            };
            if !c.is_whitespace() {
                self.last = Some(c);
            }
        }
        None
    }
}

/// The text from its first line on that is more than a comment; without blanks around it.
fn without_comments(text: &str) -> &str {
    let mut rest = text.trim();
    while rest.starts_with('#') {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest.trim_start());
    }
    rest
}

/// Whether there is nothing but blanks and comments.
fn is_blank(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut splitter = Splitter::new();
        splitter.push(text);
        let mut statements: Vec<String> =
            std::iter::from_fn(|| splitter.next_statement()).collect();
        statements.extend(splitter.take_rest());
        statements
    }

    #[test]
    fn semicolons_end_statements_where_they_are_no_text() {
        assert_eq!(
            split("select * from \"query-log\"; quit;"),
            ["select * from \"query-log\"", "quit"]
        );
        assert_eq!(split("a 'x;y' \"';\";b"), ["a 'x;y' \"';\"", "b"]);
        assert_eq!(split("select a:/x;'\\/y/ from t;b;;"), ["select a:/x;'\\/y/ from t", "b"]);
        assert_eq!(split("use '/';a =~ /;/;"), ["use '/'", "a =~ /;/"]);
        assert_eq!(split("# it's a comment;\nstatus;\n  # more\n"), ["status"]);
        assert_eq!(split(" \n;"), [""; 0]);
    }

    proptest! {
        #[test]
        fn how_the_text_comes_in_does_not_matter(text in "[a;'\"/:# \n\\\\]{0,30}", cut in 0_usize..30) {
            let whole = split(&text);
            let mut splitter = Splitter::new();
            let mut statements = Vec::new();
            let (start, end) = text.split_at(cut.min(text.len()));
            for part in [start, end] {
                splitter.push(part);
                statements.extend(std::iter::from_fn(|| splitter.next_statement()));
            }
            statements.extend(splitter.take_rest());
            prop_assert_eq!(statements, whole);
        }
    }
}
