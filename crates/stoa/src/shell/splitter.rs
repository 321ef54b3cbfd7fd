//! Cuts typed or read lines into statements.
//!
//! In: lines, one after the other. Out: statements as soon as their semicolon is there, and commands that begin
//! with a backslash; quotes and comments take as many lines as they need. Not here: what statements mean (the server
//! parses them) and what commands do (`meta.rs`).

use stoa_sql::lexer::{Lexer, TokenKind};

/// Holds the statement that is being typed.
#[derive(Debug, Default)]
pub struct Splitter {
    text: String,
    /// Bytes of `text` that were cut into tokens; what is behind them begins with a token that may go on.
    scanned: usize,
    inside: Option<TokenKind>,
}

/// What a line completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A statement, without its semicolon; never blank.
    Statement(String),
    /// A command from its backslash to the end of its line; the statement before it is still held.
    Command(String),
}

impl Splitter {
    /// Takes a line, with or without its line end.
    pub(super) fn push_line(&mut self, line: &str) {
        self.text.push_str(line.trim_end_matches(['\n', '\r']));
        self.text.push('\n');
    }

    /// The next complete statement or command; empty statements are left out.
    pub(super) fn next_piece(&mut self) -> Option<Piece> {
        loop {
            match self.scan()? {
                End::Semicolon(end) => {
                    let rest = self.text.split_off(end + 1);
                    let mut statement = std::mem::replace(&mut self.text, rest);
                    self.scanned = 0;
                    statement.truncate(end);
                    if !is_blank(&statement) {
                        return Some(Piece::Statement(statement.trim().to_owned()));
                    }
                }
                End::Backslash(begin) => {
                    let end =
                        self.text[begin..].find('\n').map_or(self.text.len(), |at| begin + at);
                    let command = self.text.drain(begin..end).collect();
                    return Some(Piece::Command(command));
                }
            }
        }
    }

    /// What is held of a statement that has not ended.
    pub(super) fn pending(&self) -> &str {
        self.text.trim()
    }

    /// What is left without a semicolon, if anything; the splitter is empty afterwards.
    pub(super) fn take_rest(&mut self) -> Option<String> {
        let rest = std::mem::take(self).text;
        (!is_blank(&rest)).then(|| rest.trim().to_owned())
    }

    /// Forgets what was typed.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether no statement has begun.
    pub(super) fn is_blank(&self) -> bool {
        self.inside.is_none() && self.text.trim().is_empty()
    }

    /// The quote or comment that the next line continues.
    pub(super) fn inside(&self) -> Option<TokenKind> {
        self.inside
    }

    /// Scans on, to the first semicolon or backslash outside of quotes and comments.
    fn scan(&mut self) -> Option<End> {
        self.inside = None;
        let (from, mut last) = (self.scanned, self.scanned);
        for token in Lexer::new(&self.text[from..]) {
            if !token.is_closed {
                self.inside = Some(token.kind);
                break;
            }
            if token.is_sign(';') {
                self.scanned = from + token.end();
                return Some(End::Semicolon(from + token.at));
            }
            if token.is_sign('\\') {
                self.scanned = from + token.at;
                return Some(End::Backslash(from + token.at));
            }
            // A word is looked at again with what follows it: it may be the `E` of `E'…'`.
            last = match token.kind {
                TokenKind::Word => from + token.at,
                _ => from + token.end(),
            };
        }
        self.scanned = last;
        None
    }
}

/// Where a statement or its line ends, bytes from the start of what is held.
enum End {
    Semicolon(usize),
    Backslash(usize),
}

/// Whether a text is nothing but blanks and comments.
fn is_blank(text: &str) -> bool {
    !Lexer::new(text).any(|token| token.is_significant())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, statements: &[&str], rest: Option<&str>) {
        let mut splitter = Splitter::default();
        let mut found = Vec::new();
        for line in text.lines() {
            splitter.push_line(line);
            while let Some(piece) = splitter.next_piece() {
                match piece {
                    Piece::Statement(statement) => found.push(statement),
                    Piece::Command(command) => panic!("{command}"),
                }
            }
        }
        assert_eq!(found, statements, "{text:?}");
        assert_eq!(splitter.take_rest().as_deref(), rest, "{text:?}");
    }

    #[test]
    fn semicolons_end_statements_outside_of_quotes_and_comments() {
        check("SELECT 1; SELECT 2;", &["SELECT 1", "SELECT 2"], None);
        check("SELECT\n1\n;\nSELECT 2", &["SELECT\n1"], Some("SELECT 2"));
        check("SELECT 'a;b', \"c;d\", `e;f`;", &["SELECT 'a;b', \"c;d\", `e;f`"], None);
        check("SELECT 'it''s; fine';", &["SELECT 'it''s; fine'"], None);
        check("SELECT 'back\\'; SELECT 2;", &["SELECT 'back\\'", "SELECT 2"], None);
        check("SELECT E'quote\\';';", &["SELECT E'quote\\';'"], None);
        check("SELECT E'a\\\\'; SELECT 2;", &["SELECT E'a\\\\'", "SELECT 2"], None);
        check("SELECT type'a\\';", &["SELECT type'a\\'"], None);
        check("SELECT 1 -- no; end\n;", &["SELECT 1 -- no; end"], None);
        check("SELECT /* a; /* b; */ c; */ 1;", &["SELECT /* a; /* b; */ c; */ 1"], None);
        check("SELECT 1 - -1; SELECT 6 / 2;", &["SELECT 1 - -1", "SELECT 6 / 2"], None);
    }

    #[test]
    fn dollar_quotes_hold_anything_and_parameters_do_not() {
        check("SELECT $$a;'b$$;", &["SELECT $$a;'b$$"], None);
        check("SELECT $t$a;\n$$;$t$ ; x", &["SELECT $t$a;\n$$;$t$"], Some("x"));
        check("SELECT $1; SELECT $2;", &["SELECT $1", "SELECT $2"], None);
        check("SELECT a$b$; SELECT c$b$;", &["SELECT a$b$", "SELECT c$b$"], None);
    }

    #[test]
    fn commands_end_with_their_line_and_leave_the_statement() {
        let mut splitter = Splitter::default();
        splitter.push_line("\\d a;b 'c");
        assert_eq!(splitter.next_piece(), Some(Piece::Command("\\d a;b 'c".into())));
        assert_eq!(splitter.next_piece(), None);
        assert!(splitter.is_blank());
        splitter.push_line("SELECT 1;SELECT '\\g', E'\\n' \\g x.csv");
        assert_eq!(splitter.next_piece(), Some(Piece::Statement("SELECT 1".into())));
        assert_eq!(splitter.next_piece(), Some(Piece::Command("\\g x.csv".into())));
        assert_eq!(splitter.next_piece(), None);
        assert_eq!(splitter.pending(), "SELECT '\\g', E'\\n'");
        splitter.push_line("-- \\q");
        splitter.push_line(", 2;");
        let rest = "SELECT '\\g', E'\\n' \n-- \\q\n, 2";
        assert_eq!(splitter.next_piece(), Some(Piece::Statement(rest.into())));
    }

    #[test]
    fn quotes_run_over_lines() {
        check("SELECT 'a\n;\nb';", &["SELECT 'a\n;\nb'"], None);
        check("SELECT 'never\n;", &[], Some("SELECT 'never\n;"));
    }

    #[test]
    fn what_is_only_blank_or_comment_is_no_statement() {
        check(";;  ; -- hello\n /* a */ ;", &[], None);
        check("-- hello\nSELECT 1;", &["-- hello\nSELECT 1"], None);
        check("/* open", &[], None);
    }

    #[test]
    fn text_of_other_scripts_is_left_alone() {
        check(
            "SELECT '日本;語' AS 地域; SELECT $ü$;$ü$;",
            &["SELECT '日本;語' AS 地域", "SELECT $ü$;$ü$"],
            None,
        );
    }

    #[test]
    fn the_prompt_knows_what_is_open() {
        let mut splitter = Splitter::default();
        assert!(splitter.is_blank());
        splitter.push_line("SELECT 'a");
        assert_eq!(splitter.next_piece(), None);
        assert_eq!(splitter.inside(), Some(TokenKind::Text { escapes: false }));
        assert!(!splitter.is_blank());
        splitter.clear();
        assert!(splitter.is_blank());
    }
}
