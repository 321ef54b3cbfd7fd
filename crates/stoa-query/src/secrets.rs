//! Passwords in the texts of statements, which are shown to others and kept in histories.
//!
//! In: any text, be it SQL or not, and cut off anywhere. Out: the same without what may be a password:
//! every text behind the words `PASSWORD` and `IDENTIFIED`, or in a statement that makes or alters a
//! role; what stands right behind `PASSWORD` and `IDENTIFIED BY` though it is no text; and comments with
//! these words. **Invariant:** too much is hidden rather than too little; most statements have none of
//! the words and are looked through once.

use std::borrow::Cow;

/// What stands for a text that is hidden, and for anything else.
const HIDDEN_TEXT: &str = "'…'";
const HIDDEN: &str = "…";

/// Words of which one is in each text that holds a password.
const MARKS: [&str; 4] = ["password", "identified", "create", "alter"];

/// The text without what may be a password; borrowed where nothing of it is hidden.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if !MARKS.iter().any(|mark| contains(text, mark)) {
        return Cow::Borrowed(text);
    }
    let mut hiding = Hiding::default();
    let mut tokens = Tokens { text, at: 0 };
    while let Some(token) = tokens.next_token() {
        hiding.take(&token);
    }
    match hiding.has_hidden {
        true => Cow::Owned(hiding.shown),
        false => Cow::Borrowed(text),
    }
}

fn contains(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Blank,
    Comment,
    /// Letters and digits.
    Word,
    /// `'…'`, `$$…$$`.
    Text,
    /// `"…"`, `` `…` ``.
    Name,
    Sign,
}

struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

/// Cuts a text into tokens; all of them together are the text.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let (kind, length) = match first {
            _ if first.is_whitespace() => (Kind::Blank, first.len_utf8()),
            '-' if rest.starts_with("--") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (Kind::Comment, comment_length(rest)),
            '\'' => (Kind::Text, quoted_length(rest, '\'', self.has_escapes())),
            '"' | '`' => (Kind::Name, quoted_length(rest, first, false)),
            '$' => match dollar_length(rest) {
                Some(length) => (Kind::Text, length),
                None => (Kind::Sign, 1),
            },
            _ if is_word(first) => (Kind::Word, rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
            _ => (Kind::Sign, first.len_utf8()),
        };
        self.at += length;
        Some(Token { kind, text: &rest[..length] })
    }

    /// Whether the text that begins here is an `E'…'`.
    fn has_escapes(&self) -> bool {
        let before = &self.text[..self.at];
        let word = before.rfind(|c| !is_word(c)).map_or(before, |place| {
            let sign = before[place..].chars().next().map_or(1, char::len_utf8);
            &before[place + sign..]
        });
        word.eq_ignore_ascii_case("e")
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || !c.is_ascii() && !c.is_whitespace()
}

/// Bytes up to and with the end of a nested comment.
fn comment_length(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (at, depth) = (at + 2, depth + 1),
            Some(b"*/") => (at, depth) = (at + 2, depth.saturating_sub(1)),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Bytes up to and with the quote that ends a text; two in a row are one of its characters.
fn quoted_length(text: &str, quote: char, escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, next)) = chars.next() {
        if next == '\\' && escapes {
            chars.next();
        } else if next == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

/// Bytes of a `$tag$…$tag$`; `None` for another `$`.
fn dollar_length(text: &str) -> Option<usize> {
    let end = text[1..].find('$')? + 2;
    let mark = &text[..end];
    let tag = &mark[1..end - 1];
    let is_tag = tag.chars().all(is_word) && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| text[end..].find(mark).map_or(text.len(), |place| end + place + end))
}

/// Decides, token by token.
#[derive(Default)]
struct Hiding {
    shown: String,
    /// Whether anything is hidden.
    has_hidden: bool,
    /// Whether texts are hidden from here on.
    texts: bool,
    /// Whether it is about a role.
    of_role: bool,
    /// Whether the word right before asks for a password.
    asks: bool,
    /// The word before.
    word: String,
}

impl Hiding {
    fn take(&mut self, token: &Token<'_>) {
        let hides = match token.kind {
            Kind::Blank => false,
            Kind::Sign => {
                self.asks &= token.text == "=";
                false
            }
            Kind::Comment => {
                let names =
                    ["password", "identified"].iter().any(|word| contains(token.text, word));
                self.texts || names
            }
            Kind::Text => std::mem::take(&mut self.asks) || self.texts,
            Kind::Name => std::mem::take(&mut self.asks),
            Kind::Word => self.take_word(token.text),
        };
        self.has_hidden |= hides;
        self.shown.push_str(match (hides, token.kind) {
            (false, _) => token.text,
            (true, Kind::Text) => HIDDEN_TEXT,
            (true, _) => HIDDEN,
        });
    }

    /// Whether the word is a password itself.
    fn take_word(&mut self, text: &str) -> bool {
        let before = std::mem::replace(&mut self.word, text.to_ascii_lowercase());
        let asked = std::mem::take(&mut self.asks);
        match self.word.as_str() {
            "password" => (self.texts, self.asks) = (true, true),
            "identified" => (self.texts, self.of_role) = (true, true),
            "by" if before == "identified" || self.of_role => self.asks = true,
            "role" | "user" if matches!(before.as_str(), "create" | "alter" | "replace") => {
                (self.texts, self.of_role) = (true, true);
            }
            // Hidden before.
            HIDDEN => {}
            // `E` of `E'…'`.
            "null" | "e" | "n" | "u" | "b" | "x" => self.asks = asked,
            _ => return asked && self.of_role,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_however_they_are_written() {
        for (text, shown) in [
            ("ALTER ROLE ann PASSWORD 'brush'", "ALTER ROLE ann PASSWORD '…'"),
            ("EXPLAIN ALTER ROLE ann PASSWORD 'brush'", "EXPLAIN ALTER ROLE ann PASSWORD '…'"),
            (
                "PREPARE p AS ALTER USER a PASSWORD $$brush$$",
                "PREPARE p AS ALTER USER a PASSWORD '…'",
            ),
            ("create user a password $x$it's $$ brush$x$", "create user a password '…'"),
            ("CREATE USER a IDENTIFIED BY 'brush'", "CREATE USER a IDENTIFIED BY '…'"),
            ("CREATE USER a IDENTIFIED BY brush", "CREATE USER a IDENTIFIED BY …"),
            ("ALTER USER a PASSWORD brush", "ALTER USER a PASSWORD …"),
            ("ALTER USER a PASSWORD = \"brush\"", "ALTER USER a PASSWORD = …"),
            ("ALTER USER a PASSWORD E'a\\'brush' LOGIN", "ALTER USER a PASSWORD E'…' LOGIN"),
            ("ALTER USER a PASSWORD U&'brush'", "ALTER USER a PASSWORD U&'…'"),
            ("ALTER USER a PASSWORD/* x */'brush", "ALTER USER a PASSWORD…'…'"),
            ("ALTER ROLE ann PASWORD 'brush'", "ALTER ROLE ann PASWORD '…'"),
            (
                "SELECT 1; ALTER ROLE a PASSWORD 'it''s brush'",
                "SELECT 1; ALTER ROLE a PASSWORD '…'",
            ),
            ("-- PASSWORD 'brush'\nSELECT 1", "…\nSELECT 1"),
            ("GRANT a TO b; SET PASSWORD TO 'brush'", "GRANT a TO b; SET PASSWORD TO '…'"),
        ] {
            assert_eq!(without_secrets(text), shown, "{text}");
        }
    }

    #[test]
    fn other_statements_are_shown_as_they_are() {
        for text in [
            "SELECT 'x' AS a, \"password\" FROM t -- all",
            "SELECT id, password FROM users",
            "ALTER ROLE ann NOLOGIN PASSWORD NULL",
            "CREATE TABLE t (role text) TBLPROPERTIES ('a' = 'b')",
            "SELECT $1, $2 FROM t WHERE a = 'ä…' /* deep /* er */ */",
        ] {
            assert!(matches!(without_secrets(text), Cow::Borrowed(_)), "{text}");
        }
    }
}

#[cfg(test)]
mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tokens_are_the_text_and_nothing_panics(text in "(PASSWORD |'|\"|\\$|a|E|--|/\\*|\\*/|\n|ä|…|;| ){0,40}") {
            let mut tokens = Tokens { text: &text, at: 0 };
            let mut whole = String::new();
            while let Some(token) = tokens.next_token() {
                whole.push_str(token.text);
            }
            prop_assert_eq!(&whole, &text);
            let _ = without_secrets(&text);
        }

        #[test]
        fn a_secret_is_in_no_text_that_is_shown(
            before in "(SELECT 1;|EXPLAIN|PREPARE x AS|-- c\n| |/\\* c \\*/){0,3}",
            role in "(ALTER|create) (ROLE|user) [a-d]{1,4}",
            options in "( LOGIN| WITH| ENCRYPTED| NOSUPERUSER){0,2}",
            quote in 0_usize..4,
            rest in "( LOGIN| ;|'x'| \\$|\"){0,3}",
        ) {
            let secret = "hunter2";
            let quoted = ["'hunter2'", "$$hunter2$$", "$q$hunter2$q$", "E'\\'hunter2'"][quote];
            let text = format!("{before} {role}{options} PASSWORD {quoted}{rest}");
            let shown = without_secrets(&text);
            prop_assert!(!shown.contains(secret), "{} -> {}", text, shown);
        }
    }
}
