//! Passwords in the texts of statements, which are shown to others and kept in histories.
//!
//! In: any text, be it SQL or not, and cut off anywhere. Out: the same without what may be a password:
//! every text behind the words `PASSWORD` and `IDENTIFIED`, or in a statement that makes or alters a
//! role; what stands right behind `PASSWORD` and `IDENTIFIED BY` though it is no text; and comments with
//! these words. **Invariant:** too much is hidden rather than too little; most statements have none of
//! the words and are looked through once.

use std::borrow::Cow;

use crate::lexer::{Lexer, Token, TokenKind};

/// What stands for a text that is hidden, and for anything else.
const HIDDEN_TEXT: &str = "'…'";
const HIDDEN: &str = "…";

/// Words of which one is in each text that holds a password. `has_mark` knows their first letters.
const MARKS: [&str; 4] = ["password", "identified", "create", "alter"];

/// The text without what may be a password; borrowed where nothing of it is hidden.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if !has_mark(text) {
        return Cow::Borrowed(text);
    }
    let mut hiding = Hiding::default();
    for token in Lexer::new(text) {
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

/// Looked at once for all marks: every statement is asked.
fn has_mark(text: &str) -> bool {
    let is_at = |at: usize, mark: &str| {
        let found = text.as_bytes().get(at..at + mark.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(mark.as_bytes()))
    };
    text.bytes().enumerate().any(|(at, byte)| match byte.to_ascii_lowercase() {
        b'p' | b'i' | b'c' | b'a' => MARKS.iter().any(|mark| is_at(at, mark)),
        _ => false,
    })
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
    /// Whether the token right before is a number that is hidden.
    behind_hidden_number: bool,
    /// The word before.
    word: String,
}

impl Hiding {
    fn take(&mut self, token: &Token<'_>) {
        let hides = match token.kind {
            TokenKind::Blank => false,
            TokenKind::Sign => {
                self.asks &= token.text == "=";
                false
            }
            TokenKind::Comment => {
                let names =
                    ["password", "identified"].iter().any(|word| contains(token.text, word));
                self.texts || names
            }
            TokenKind::Text { .. } | TokenKind::DollarText => {
                std::mem::take(&mut self.asks) || self.texts
            }
            TokenKind::Name => std::mem::take(&mut self.asks),
            // `123abc` is a number and a word.
            TokenKind::Word if self.behind_hidden_number => true,
            TokenKind::Word | TokenKind::Number => self.take_word(token.text),
        };
        self.has_hidden |= hides;
        self.behind_hidden_number = hides && token.kind == TokenKind::Number;
        self.shown.push_str(match (hides, token.kind) {
            (false, _) => token.text,
            (true, TokenKind::Text { .. } | TokenKind::DollarText) => HIDDEN_TEXT,
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
            ("ALTER USER a PASSWORD 12brush", "ALTER USER a PASSWORD ……"),
            ("ALTER USER a PASSWORD br$ush", "ALTER USER a PASSWORD …"),
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
