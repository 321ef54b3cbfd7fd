//! Translations of queries that differ from earlier ones only in values that columns are compared with.
//!
//! ```text
//! … WHERE id = 17 AND day BETWEEN DATE '2024-05-01' AND DATE '2024-05-31'      a report
//! … where id = ?i and day BETWEEN DATE ?s AND DATE ?s                          its skeleton, and three literals
//! ```
//! A report over HiveServer2 costs less than its translation would, so most reports are put together from what an earlier
//! one became. Only whole numbers and plain texts right behind a comparison are places: translating looks at their kind,
//! never at their value.
//!
//! **Invariant:** a form gives the text that [`translate`] gives. That is tried when it is made: with the literals of the
//! query, and with two sets of others. Texts that a simple look does not understand (other quotes, escapes, comments,
//! variables, letters beyond ASCII) have no skeleton.
//!
//! Not here: where forms are kept (`stoa-query`).

use crate::{Options, translate};

/// Digits of the longest number that is a place.
const DIGITS_MAX: usize = 18;

/// Most places of a query.
const PLACES_MAX: usize = 32;

/// A query apart from the values that columns are compared with.
#[derive(Debug)]
pub struct Skeleton<'a> {
    key: String,
    text: &'a str,
    literals: Vec<Literal<'a>>,
}

/// A value in a query.
#[derive(Clone, Copy, Debug)]
struct Literal<'a> {
    /// As it is written, with its quotes.
    text: &'a str,
    at: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    /// A text behind `DATE`.
    Date,
}

/// What queries of one skeleton become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Texts, each before the literal of this number.
    parts: Vec<(String, usize)>,
    rest: String,
}

impl<'a> Skeleton<'a> {
    /// The skeleton of a text; `None` for what is no single query, or not plain enough.
    pub fn of(text: &'a str, options: Options) -> Option<Self> {
        let text = text.trim();
        let begins = text.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
        if !begins || !is_plain(text) {
            return None;
        }
        let mut key = String::with_capacity(text.len() + 2);
        key.push(if options.nulls_last { 'l' } else { 'f' });
        key.push(if options.partial_scripts { 'p' } else { 'w' });
        let (mut literals, mut copied) = (Vec::new(), 0);
        let mut before = Before::Other;
        let mut at = 0;
        while at < text.len() {
            let end = token_end(text, at)?;
            let token = &text[at..end];
            let begin = at;
            at = end;
            if token.starts_with(|c: char| c.is_ascii_whitespace()) {
                continue;
            }
            if let Some(kind) = before.place_of(token, &text[end..]) {
                key.push_str(&text[copied..begin]);
                // No plain text has these characters.
                key.push(if kind == Kind::Number { '\u{1}' } else { '\u{2}' });
                literals.push(Literal { text: token, at: begin, kind });
                copied = end;
            }
            before = before.and(token);
        }
        key.push_str(&text[copied..]);
        let is_useful = (1..=PLACES_MAX).contains(&literals.len());
        is_useful.then_some(Self { key, text, literals })
    }

    /// The same for all queries of one form.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The query in Stoa's SQL.
    pub fn translated(&self, form: &Form) -> String {
        form.with(&self.literals.iter().map(|literal| literal.text).collect::<Vec<_>>())
    }

    /// What queries of this skeleton become; `None` where that depends on more than places.
    pub fn learn(&self, options: Options) -> Option<Form> {
        let (one, other) = (self.with_others(options, 1)?, self.with_others(options, 2)?);
        let own = translate(self.text, options).ok()?;
        (one == other && self.translated(&one) == own).then_some(one)
    }

    /// The form as it shows with other literals in place of the query's.
    fn with_others(&self, options: Options, set: usize) -> Option<Form> {
        let other = |(at, literal): (usize, &Literal<'_>)| match literal.kind {
            Kind::Number => format!("73{set}20{:06}41", at + 1),
            Kind::Text => format!("'place {set} of {:06}'", at + 1),
            Kind::Date => format!("'19{set}{}-06-{:02}'", at / 28, at % 28 + 1),
        };
        let others: Vec<String> = self.literals.iter().enumerate().map(other).collect();
        let (mut text, mut copied) = (String::new(), 0);
        for (literal, other) in self.literals.iter().zip(&others) {
            text.push_str(&self.text[copied..literal.at]);
            text.push_str(other);
            copied = literal.at + literal.text.len();
        }
        text.push_str(&self.text[copied..]);
        Form::cut(&translate(&text, options).ok()?, &others)
    }
}

impl Form {
    /// A translation, cut where its literals are; `None` if one of them is not there.
    fn cut(translated: &str, literals: &[String]) -> Option<Self> {
        let (mut parts, mut rest) = (Vec::new(), translated);
        let next = |rest: &str| {
            let found =
                |(number, literal): (usize, &String)| Some((rest.find(literal.as_str())?, number));
            literals.iter().enumerate().filter_map(found).min()
        };
        while let Some((at, number)) = next(rest) {
            parts.push((rest[..at].to_owned(), number));
            rest = &rest[at + literals[number].len()..];
        }
        let is_there = |number: usize| parts.iter().any(|(_, own)| *own == number);
        (0..literals.len()).all(is_there).then(|| Self { parts, rest: rest.to_owned() })
    }

    fn with(&self, literals: &[&str]) -> String {
        let length = |number: &usize| literals.get(*number).map_or(0, |literal| literal.len());
        let all: usize = self.parts.iter().map(|(part, number)| part.len() + length(number)).sum();
        let mut text = String::with_capacity(all + self.rest.len());
        for (part, number) in &self.parts {
            text.push_str(part);
            text.push_str(literals.get(*number).copied().unwrap_or_default());
        }
        text.push_str(&self.rest);
        text
    }
}

/// Whether a look at single characters understands a text.
fn is_plain(text: &str) -> bool {
    let is_simple = |byte: u8| match byte {
        b'\\' | b'"' | b'`' | b'$' | b';' | b'{' | b'}' | b'#' | b'@' => false,
        b' ' | b'\t' | b'\n' | b'\r' => true,
        byte => byte.is_ascii_graphic(),
    };
    text.bytes().all(is_simple) && !text.contains("--") && !text.contains("/*")
}

/// Where a token ends: blanks, a word, a number, a text in quotes, or one other character. `None` for a text without end.
fn token_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let run = |is_part: &dyn Fn(char) -> bool| {
        rest.find(|char| !is_part(char)).map_or(text.len(), |length| at + length)
    };
    Some(match rest.chars().next()? {
        c if c.is_ascii_whitespace() => run(&|c| c.is_ascii_whitespace()),
        c if is_word(c) => run(&|c| is_word(c) || c == '.'),
        '\'' => at + 2 + rest[1..].find('\'')?,
        _ => at + 1,
    })
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// What stands before a token, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// A comparison, or `BETWEEN`.
    Comparison,
    /// `AND` behind `BETWEEN` and a value.
    SecondBound,
    /// The first value of a `BETWEEN`.
    FirstBound,
    /// `BETWEEN`.
    Between,
    /// `DATE` behind a comparison, or within a `BETWEEN`; whether a bound or the second one follows.
    Date {
        of_between: bool,
        is_second: bool,
    },
    Other,
}

impl Before {
    /// What kind of place a token is here; `None` for none.
    fn place_of(self, token: &str, behind: &str) -> Option<Kind> {
        if matches!(self, Self::Other | Self::FirstBound) {
            return None;
        }
        if token.starts_with('\'') {
            let is_date = matches!(self, Self::Date { .. });
            // Texts that follow each other are one.
            let is_alone = !behind.trim_start().starts_with('\'');
            return is_alone.then_some(if is_date { Kind::Date } else { Kind::Text });
        }
        let is_number = token.bytes().all(|byte| byte.is_ascii_digit())
            && token.len() <= DIGITS_MAX
            && (token == "0" || !token.starts_with('0'));
        (is_number && !matches!(self, Self::Date { .. })).then_some(Kind::Number)
    }

    /// What stands before the token that follows this one.
    fn and(self, token: &str) -> Self {
        let is = |word: &str| token.eq_ignore_ascii_case(word);
        match self {
            Self::Comparison if is("date") => Self::Date { of_between: false, is_second: false },
            Self::Between if is("date") => Self::Date { of_between: true, is_second: false },
            Self::SecondBound if is("date") => Self::Date { of_between: true, is_second: true },
            Self::Between | Self::Date { of_between: true, is_second: false } => Self::FirstBound,
            Self::FirstBound if is("and") => Self::SecondBound,
            _ if is("between") => Self::Between,
            _ if matches!(token, "=" | "<" | ">") => Self::Comparison,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many places a text has, and that its form gives what translating it and `other` gives.
    fn check(text: &str, other: &str, places: usize) {
        let options = Options::default();
        let skeleton = Skeleton::of(text, options).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(skeleton.literals.len(), places, "{text}: {:?}", skeleton.key());
        let form = skeleton.learn(options).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(skeleton.translated(&form), translate(text, options).unwrap());
        let same = Skeleton::of(other, options).unwrap();
        assert_eq!(same.key(), skeleton.key());
        assert_eq!(same.translated(&form), translate(other, options).unwrap());
    }

    #[test]
    fn reports_are_put_together() {
        check(
            "SELECT a, sum(b) FROM t WHERE a = 17 AND d BETWEEN DATE '2024-05-01' AND DATE '2024-05-31' GROUP BY a",
            "SELECT a, sum(b) FROM t WHERE a = 4 AND d BETWEEN DATE '2023-01-01' AND DATE '1999-12-31' GROUP BY a",
            3,
        );
        check(
            "select * from t where a >= '2024' and b<5 and c between 1 and 2 order by x limit 10",
            "select * from t where a >= 'x y' and b<123456789012345678 and c between 0 and 77 order by x limit 10",
            4,
        );
        check(
            "select a == 1, a != 2, a <> 3, a <= 4 from t",
            "select a == 5, a != 6, a <> 7, a <= 8 from t",
            4,
        );
        check(
            "select 1 from t where a = '' or b = 'it is'",
            "select 1 from t where a = 'x' or b = ''",
            2,
        );
    }

    /// The text with a literal of each kind in all places of that kind.
    fn with_all(skeleton: &Skeleton<'_>, number: &str, text: &str, date: &str) -> String {
        let (mut all, mut copied) = (String::new(), 0);
        for literal in &skeleton.literals {
            all.push_str(&skeleton.text[copied..literal.at]);
            all.push_str(match literal.kind {
                Kind::Number => number,
                Kind::Text => text,
                Kind::Date => date,
            });
            copied = literal.at + literal.text.len();
        }
        all + &skeleton.text[copied..]
    }

    #[test]
    fn queries_of_the_corpus_are_put_together() {
        let options = Options::default();
        let mut forms = 0;
        for entry in std::fs::read_dir("../stoa-query/tests/hiveql").unwrap() {
            let path = entry.unwrap().path();
            if !path.is_file() {
                continue;
            }
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let Some(query) = line.strip_prefix("Q ") else { continue };
                let Some(skeleton) = Skeleton::of(query, options) else { continue };
                let Some(form) = skeleton.learn(options) else { continue };
                forms += 1;
                for (number, text, date) in [
                    ("0", "''", "'2024-02-29'"),
                    ("1", "'a'", "'0001-01-01'"),
                    ("12", "'%_'", "'1969-12-31'"),
                    ("2147483648", "'yyyy-MM-dd'", "'9999-12-31'"),
                    ("999999999999999999", "' 1.50 '", "'2024-05-01'"),
                ] {
                    let other = with_all(&skeleton, number, text, date);
                    let same = Skeleton::of(&other, options).unwrap();
                    assert_eq!(same.key(), skeleton.key(), "{other}");
                    assert_eq!(
                        same.translated(&form),
                        translate(&other, options).unwrap(),
                        "{other}"
                    );
                }
            }
        }
        assert!(forms > 30, "{forms}");
    }

    #[test]
    fn other_literals_are_part_of_the_skeleton() {
        let key = |text: &str| {
            Skeleton::of(text, Options::default()).map(|skeleton| skeleton.key().to_owned())
        };
        for (one, other) in [
            ("select round(a, 1) from t where b = 1", "select round(a, 2) from t where b = 1"),
            ("select a[0] from t where b = 1", "select a[1] from t where b = 1"),
            ("select a from t where b = 1 limit 1", "select a from t where b = 1 limit 2"),
            (
                "select a from t where b = 1 and c / 3 > 1",
                "select a from t where b = 1 and c / 10 > 1",
            ),
            ("select a from t where b = 1.5 and c = 2", "select a from t where b = 1.7 and c = 2"),
            ("select a from t where b = 1L and c = 2", "select a from t where b = 2L and c = 2"),
            ("select a from t where b = 007 and c = 2", "select a from t where b = 008 and c = 2"),
            ("select a from t where b = -1 and c = 2", "select a from t where b = -2 and c = 2"),
            ("select a from t where b = 'x' and c = 2", "select a from t where b = 1 and c = 2"),
        ] {
            assert!(key(one).is_some(), "{one}");
            assert_ne!(key(one), key(other), "{one}");
        }
        let other = Options { nulls_last: true, ..Options::default() };
        let text = "select a from t where b = 1";
        assert_ne!(key(text), Skeleton::of(text, other).map(|skeleton| skeleton.key().to_owned()));
    }

    #[test]
    fn what_is_not_plain_has_no_skeleton() {
        for text in [
            "select a from t where b = \"x\"",
            "select a from t where b = 'it\\'s'",
            "select a from t where b = 'ü'",
            "select a from t where `b` = 1",
            "select a from t where b = 1; select 2",
            "select a from t where b = 1 -- one",
            "select a /* one */ from t where b = 1",
            "select a from t where b = ${x}",
            "select a from t where b = 'no end",
            "select a from t",
            "insert into t select 1 from u where a = 1",
            "",
        ] {
            assert!(Skeleton::of(text, Options::default()).is_none(), "{text}");
        }
        // Two texts are one literal: the second has no place of its own.
        let text = "select a from t where c = 1 and b = 'x' 'y'";
        let skeleton = Skeleton::of(text, Options::default()).unwrap();
        assert_eq!(skeleton.literals.len(), 1);
        assert!(skeleton.learn(Options::default()).is_some());
        // It cannot be translated: there is no form.
        let text = "select reflect(a) from t where b = 1";
        assert!(
            Skeleton::of(text, Options::default()).unwrap().learn(Options::default()).is_none()
        );
    }
}
