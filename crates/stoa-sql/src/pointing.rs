//! Where in a statement the part stands that an error is about.
//!
//! In: an error that knows its [`Subject`], and the statement's text. Out: the same error with the position of that
//! part, in characters from 1. **Invariant:** where several parts could be meant that cannot be told apart, there is no
//! position rather than a wrong one; of a name that is nowhere right, the first place counts.

use stoa_error::{Error, Subject};

use crate::lexer::{Lexer, Token, TokenKind};

/// `error`, pointing at what it is about in `text`, unless it points somewhere already.
#[must_use]
pub fn point(error: Error, text: &str) -> Error {
    let Some(subject) = error.subject().filter(|_| error.position().is_none()) else {
        return error;
    };
    let tokens: Vec<Token<'_>> = Lexer::new(text).filter(Token::is_significant).collect();
    let places = Places { tokens: &tokens };
    if let Subject::Column { relation: Some(table), .. } = subject
        && let Some(missing) = places.no_such_table(table)
    {
        return point(missing, text);
    }
    match places.of(subject) {
        Some(at) => {
            let before = text.get(..at).map_or(0, |before| before.chars().count());
            error.with_position(before + 1)
        }
        None => error,
    }
}

struct Places<'a> {
    tokens: &'a [Token<'a>],
}

impl Places<'_> {
    /// Where the subject stands, in bytes.
    fn of(&self, subject: &Subject) -> Option<usize> {
        match subject {
            Subject::Column { relation, name } => {
                let qualified = relation.as_ref().and_then(|table| self.column(Some(table), name));
                let star = || self.only(|at| self.is(at, "*") && self.was(at, "SELECT"));
                qualified.or_else(|| self.column(None, name)).or_else(star)
            }
            Subject::OnlyColumn(name) => self.only(|at| {
                let is_alone = !self.was(at, ".") && !self.is(at + 1, ".") && !self.is(at + 1, "(");
                self.is_name(at, name) && is_alone
            }),
            Subject::Relation(name) => self.relation(name),
            Subject::Qualifier(name) => {
                let qualifies = |at: &usize| self.is_name(*at, name) && self.is(at + 1, ".");
                self.places().find(qualifies).map(|at| self.chain_start(at))
            }
            Subject::Function(name) => {
                let calls = |at: &usize| self.is_name(*at, name) && self.is(at + 1, "(");
                self.places().find(calls).map(|at| self.chain_start(at))
            }
            Subject::OnlyCall(name) => {
                let at = self.only_place(|at| self.is_name(at, name) && self.is(at + 1, "("))?;
                Some(self.chain_start(at))
            }
            Subject::Type(name) => self.type_name(name),
            Subject::Operator { sign, left, right } => {
                self.operator(sign, left.as_deref(), right.as_deref())
            }
            Subject::Literal(value) => self.only(|at| self.is_text(at, value)),
            Subject::Behind(word) => {
                let at = self.only_place(|at| self.is(at, word))?;
                self.tokens.get(at + 1).map(|token| token.at)
            }
            Subject::Condition(name) => {
                const BEFORE: [&str; 6] = ["WHERE", "HAVING", "ON", "AND", "OR", "WHEN"];
                let is_condition = |at: &usize| {
                    let start = self.chain_index(*at);
                    self.is_name(*at, name) && BEFORE.iter().any(|word| self.was(start, word))
                };
                self.places().find(is_condition).map(|at| self.chain_start(at))
            }
            Subject::Repeated(name) => self
                .places()
                .filter(|at| self.is_name(*at, name))
                .nth(1)
                .map(|at| self.tokens[at].at),
            Subject::Name(name) => self.only(|at| self.is_name(at, name)),
        }
    }

    fn places(&self) -> std::ops::Range<usize> {
        0..self.tokens.len()
    }

    /// Whether the token there is this keyword or sign.
    fn is(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| match token.kind {
            TokenKind::Word => token.text.eq_ignore_ascii_case(word),
            TokenKind::Sign => token.text == word,
            _ => false,
        })
    }

    fn was(&self, at: usize, word: &str) -> bool {
        at > 0 && self.is(at - 1, word)
    }

    /// Whether the token there is a name that means this one.
    fn is_name(&self, at: usize, name: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| match token.kind {
            TokenKind::Word => token.text.to_lowercase() == name.to_lowercase(),
            TokenKind::Name => unquoted(token.text, '"') == name,
            _ => false,
        })
    }

    fn is_text(&self, at: usize, value: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| {
            matches!(token.kind, TokenKind::Text { .. }) && unquoted(token.text, '\'') == value
        })
    }

    /// Where the chain of names begins that ends with this token: `a` of `a.b.c`.
    fn chain_start(&self, at: usize) -> usize {
        self.tokens[self.chain_index(at)].at
    }

    fn chain_index(&self, at: usize) -> usize {
        let mut start = at;
        while start >= 2 && self.is(start - 1, ".") {
            start -= 2;
        }
        start
    }

    /// The first name that is a column's; else the first that may be one.
    fn column(&self, relation: Option<&str>, name: &str) -> Option<usize> {
        let is_meant = |at: &usize| {
            let qualified = match relation {
                Some(relation) => self.was(*at, ".") && *at >= 2 && self.is_name(at - 2, relation),
                None => !self.was(*at, "."),
            };
            self.is_name(*at, name) && qualified && !self.is(at + 1, "(") && !self.is(at + 1, ".")
        };
        let defines = |at: &usize| self.was(*at, "AS") || self.names_a_table(*at);
        let places = || self.places().filter(is_meant);
        let found = places().find(|at| !defines(at)).or_else(|| places().next());
        found.map(|at| self.chain_start(at))
    }

    /// What is wrong with a qualifier for which there is no table: none is called so, or it has an alias.
    fn no_such_table(&self, table: &str) -> Option<Error> {
        let error = |said: String| {
            let subject = Subject::Qualifier(table.to_owned());
            Error::not_found(said).with_sqlstate("42P01").about(subject)
        };
        let is_named = |at: &usize| self.is_name(*at, table) && !self.is(at + 1, ".");
        let mut named = self.places().filter(is_named).peekable();
        if named.peek().is_none() {
            self.places().find(|at| self.is_name(*at, table))?;
            let said = format!("missing FROM-clause entry for table \"{table}\"");
            return Some(error(said).with_hint("name it in FROM, or write its alias"));
        }
        let aliases: Option<Vec<_>> = named.map(|at| self.alias_at(at)).collect();
        let alias = aliases?.into_iter().next()?;
        let said = format!("invalid reference to FROM-clause entry for table \"{table}\"");
        let hint = format!("Perhaps you meant to reference the table alias \"{alias}\".");
        Some(error(said).with_hint(hint))
    }

    /// The alias of the table that is named there; `None` where it has none, or no table is named.
    fn alias_at(&self, at: usize) -> Option<&str> {
        const NO_ALIAS: [&str; 26] = [
            "WHERE",
            "JOIN",
            "LEFT",
            "RIGHT",
            "FULL",
            "INNER",
            "CROSS",
            "NATURAL",
            "ON",
            "USING",
            "GROUP",
            "ORDER",
            "HAVING",
            "LIMIT",
            "OFFSET",
            "FETCH",
            "UNION",
            "EXCEPT",
            "INTERSECT",
            "WINDOW",
            "SET",
            "VALUES",
            "SELECT",
            "RETURNING",
            "WITH",
            "FOR",
        ];
        let is_table = self.names_a_table(at) || self.was(self.chain_index(at), ",");
        let next = if self.is(at + 1, "AS") { at + 2 } else { at + 1 };
        let token = self.tokens.get(next).filter(|_| is_table)?;
        let is_name = matches!(token.kind, TokenKind::Word | TokenKind::Name)
            && !NO_ALIAS.iter().any(|word| token.is_word(word));
        is_name.then(|| token.text.trim_matches('"'))
    }

    /// Whether a table or view is named there.
    fn names_a_table(&self, at: usize) -> bool {
        const BEFORE: [&str; 7] = ["FROM", "JOIN", "INTO", "UPDATE", "USING", "TABLE", "ONLY"];
        let start = self.chain_index(at);
        BEFORE.iter().any(|word| self.was(start, word))
    }

    fn relation(&self, name: &str) -> Option<usize> {
        let is_meant =
            |at: &usize| self.is_name(*at, name) && !self.is(at + 1, ".") && !self.was(*at, "AS");
        let places = || self.places().filter(is_meant);
        // Behind a comma, a table is the second of a list.
        let found = places().find(|at| self.names_a_table(*at)).or_else(|| places().next());
        found.map(|at| self.chain_start(at))
    }

    fn type_name(&self, name: &str) -> Option<usize> {
        let is_meant = |at: &usize| self.is_name(*at, name);
        let casts = |at: &usize| self.was(*at, ":") || self.was(*at, "AS");
        let places = || self.places().filter(is_meant);
        let found = places().find(casts).or_else(|| places().next());
        found.map(|at| self.tokens[at].at)
    }

    /// The one place of an operator, or the one beside these operands.
    fn operator(&self, sign: &str, left: Option<&str>, right: Option<&str>) -> Option<usize> {
        let begins = |at: &usize| {
            let signs = self.signs_at(*at);
            let is_sign =
                |found: &str| found.eq_ignore_ascii_case(sign) || (found == "<>" && sign == "!=");
            signs.as_deref().is_some_and(is_sign)
        };
        let has = |at: usize, operand: Option<&str>| {
            operand.is_none_or(|operand| {
                self.is_name(at, operand)
                    || self.is_text(at, operand)
                    || self.tokens.get(at).is_some_and(|token| token.text == operand)
            })
        };
        let places: Vec<usize> = self.places().filter(begins).collect();
        if let [only] = places.as_slice() {
            return Some(self.tokens[*only].at);
        }
        let length = if sign.starts_with(|c: char| c.is_alphabetic()) { 1 } else { sign.len() };
        let beside = |at: &&usize| **at > 0 && has(**at - 1, left) && has(**at + length, right);
        let mut beside = places.iter().filter(beside);
        match (beside.next(), beside.next()) {
            (Some(only), None) => Some(self.tokens[*only].at),
            _ => None,
        }
    }

    /// The operator that begins there: all of its signs, or a word.
    fn signs_at(&self, at: usize) -> Option<String> {
        const SIGNS: &str = "+-*/<>=~!@#%^&|`?";
        let is_sign = |at: usize| {
            self.tokens
                .get(at)
                .filter(|token| token.kind == TokenKind::Sign && SIGNS.contains(token.text))
        };
        let first = self.tokens.get(at)?;
        if first.kind == TokenKind::Word {
            return Some(first.text.to_owned());
        }
        is_sign(at)?;
        if at > 0 && is_sign(at - 1).is_some_and(|before| before.end() == first.at) {
            return None;
        }
        let mut signs = String::new();
        let (mut next, mut end) = (at, first.at);
        while let Some(token) = is_sign(next).filter(|token| token.at == end) {
            signs.push_str(token.text);
            (next, end) = (next + 1, token.end());
        }
        Some(signs)
    }

    fn only_place(&self, holds: impl Fn(usize) -> bool) -> Option<usize> {
        let mut places = self.places().filter(|at| holds(*at));
        let found = places.next()?;
        places.next().is_none().then_some(found)
    }

    fn only(&self, holds: impl Fn(usize) -> bool) -> Option<usize> {
        self.only_place(holds).map(|at| self.tokens[at].at)
    }
}

/// What stands between quotes, where two of them are one.
fn unquoted(text: &str, quote: char) -> String {
    let inner = text.strip_prefix(quote).unwrap_or(text);
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    inner.replace(&format!("{quote}{quote}"), &quote.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, subject: Subject) -> Option<usize> {
        point(Error::invalid("no").about(subject), text).position()
    }

    fn column(relation: Option<&str>, name: &str) -> Subject {
        Subject::Column { relation: relation.map(str::to_owned), name: name.to_owned() }
    }

    #[test]
    fn columns_are_found_where_they_are_meant() {
        for (text, relation, name, at) in [
            ("SELECT nme FROM t", None, "nme", 8),
            ("SELECT 'nme', /* nme */ \"nme\" FROM t", None, "nme", 25),
            ("SELECT p.nme FROM people p", Some("p"), "nme", 8),
            ("SELECT q.nme, p.nme FROM t p, t q", Some("p"), "nme", 15),
            ("SELECT p.nme, nme FROM t p", None, "nme", 15),
            ("SELECT name AS n FROM people WHERE n = 'x'", None, "n", 36),
            ("SELECT * FROM nme WHERE nme = 1", None, "nme", 25),
            ("SELECT nme(1), nme", None, "nme", 16),
            ("SELECT 'ü', x FROM t", None, "x", 13),
            ("SELECT Name, x.NME FROM t x", Some("x"), "nme", 14),
        ] {
            assert_eq!(place(text, column(relation, name)), Some(at), "{text}");
        }
        assert_eq!(place("SELECT 1", column(None, "nme")), None);
        let grouped = "SELECT * FROM t GROUP BY b";
        assert_eq!(place(grouped, column(Some("t"), "a")), Some(8));
        assert_eq!(place("SELECT a FROM t GROUP BY b", column(Some("t"), "a")), Some(8));
    }

    #[test]
    fn a_qualifier_without_a_table_is_told_as_such() {
        for (text, said) in [
            ("SELECT x.a FROM t", "missing FROM-clause entry for table \"x\""),
            ("SELECT x.a FROM x p", "invalid reference to FROM-clause entry for table \"x\""),
            ("SELECT x.a FROM s.x AS p", "invalid reference to FROM-clause entry for table \"x\""),
            ("SELECT x.a FROM x WHERE true", "no"),
            ("SELECT x.a FROM (SELECT 1) x", "no"),
            ("SELECT x.a FROM x, x p", "no"),
        ] {
            let error = point(Error::invalid("no").about(column(Some("x"), "a")), text);
            assert_eq!((error.message(), error.position()), (said, Some(8)), "{text}");
        }
    }

    #[test]
    fn tables_functions_types_and_literals_are_found() {
        let (relation, function) = (Subject::Relation, Subject::Function);
        for (text, subject, at) in [
            ("SELECT t.a FROM t", relation("t".into()), 17),
            ("SELECT * FROM a.b, c.t", relation("t".into()), 20),
            ("INSERT INTO public.t VALUES (1)", relation("t".into()), 13),
            ("SELECT f, f(1)", function("f".into()), 11),
            ("SELECT a.f(1)", function("f".into()), 8),
            ("SELECT nothing::nothing", Subject::Type("nothing".into()), 17),
            ("SELECT a FROM t WHERE b = 'it''s'", Subject::Literal("it's".into()), 27),
            ("SELECT a FROM t LIMIT b", Subject::Behind("LIMIT"), 23),
        ] {
            assert_eq!(place(text, subject.clone()), Some(at), "{text}: {subject:?}");
        }
        assert_eq!(place("SELECT 'x', 'x'", Subject::Literal("x".into())), None);
    }

    #[test]
    fn operators_are_found_by_their_operands() {
        let operator = |sign: &str, left: &str, right: &str| Subject::Operator {
            sign: sign.to_owned(),
            left: Some(left.to_owned()),
            right: Some(right.to_owned()),
        };
        for (text, sign, left, right, at) in [
            ("SELECT a + 1", "+", "a", "1", Some(10)),
            ("SELECT a = 1, b = 'x'", "=", "b", "x", Some(17)),
            ("SELECT a >= 1, b = 2", "=", "b", "2", Some(18)),
            ("SELECT a LIKE 'x', b like 'x'", "LIKE", "b", "x", Some(22)),
            ("SELECT a = 1, a = 1", "=", "a", "1", None),
            ("SELECT a ~~~ 1", "~~~", "a", "1", Some(10)),
        ] {
            assert_eq!(place(text, operator(sign, left, right)), at, "{text}");
        }
    }

    #[test]
    fn a_position_that_is_known_stays() {
        let error = Error::invalid("no").about(Subject::Name("a".into())).with_position(3);
        assert_eq!(point(error, "SELECT a").position(), Some(3));
        assert_eq!(point(Error::invalid("no"), "SELECT a").position(), None);
    }
}
