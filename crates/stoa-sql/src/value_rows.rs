//! The rows of a long `INSERT … VALUES`, read without a syntax tree.
//!
//! In: the text of one statement. Out: where its first row ends, so that the parser sees the statement with that row only,
//! and the literals of all rows; `None` where it is anything but rows of plain literals, which the parser reads as a
//! whole. A tree takes hundreds of bytes per value, and most of the time of an INSERT; such a text may have a million values.
//!
//! **Invariant:** what this reads, the parser would read as the same literals.
//!
//! Not here: whether the literals fit the columns (`stoa-query`).

use std::borrow::Cow;

/// Shorter texts are parsed: they may have one row.
const TEXT_BYTES_MIN: usize = 4096;

/// Longer ones are refused by [`crate::measure`].
const TEXT_BYTES_MAX: usize = 16 << 20;

/// A value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueLiteral<'a> {
    /// `NULL`
    Null,
    /// Digits with at most one point in them, perhaps behind a minus.
    Number {
        /// Without the sign.
        text: &'a str,
        /// Whether there is a minus.
        negative: bool,
    },
    /// `'text'`, without quotes.
    Text(Cow<'a, str>),
    /// `DATE 'text'`
    Date(Cow<'a, str>),
    /// `TIMESTAMP 'text'`
    Timestamp(Cow<'a, str>),
    /// `true` or `false`
    Boolean(bool),
}

/// The rows of an `INSERT … VALUES`: all of one width.
#[derive(Clone, Debug)]
pub struct ValueRows {
    width: usize,
    /// Row by row.
    values: Vec<Place>,
    /// Bytes of the text up to the end of the first row.
    first_row_end: usize,
}

/// Where a literal stands in the text.
#[derive(Clone, Copy, Debug)]
struct Place {
    kind: Kind,
    /// Of the digits, or of what is between the quotes.
    start: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    True,
    False,
    Number,
    Negative,
    Text { escaped: bool },
    Date { escaped: bool },
    Timestamp { escaped: bool },
}

impl ValueRows {
    /// Whether a text is long enough and begins as such a statement does.
    pub fn may_be(text: &str) -> bool {
        let is_long = (TEXT_BYTES_MIN..=TEXT_BYTES_MAX).contains(&text.len());
        is_long && Scanner::new(text.trim_start()).word("INSERT").is_some()
    }

    /// The rows of `text`: one statement, without blanks around it or a semicolon behind it.
    pub fn of(text: &str) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut scanner = Scanner::new(text);
        scanner.head()?;
        let mut values = Vec::with_capacity(text.len() / 8);
        scanner.row(&mut values)?;
        let (width, first_row_end) = (values.len(), scanner.at);
        loop {
            scanner.blanks();
            if scanner.at == text.len() {
                values.shrink_to_fit();
                return Some(Self { width, values, first_row_end });
            }
            scanner.sign(b',')?;
            let before = values.len();
            scanner.row(&mut values)?;
            if values.len() - before != width {
                return None;
            }
        }
    }

    /// The statement with its first row only.
    pub fn with_first_row<'a>(&self, text: &'a str) -> Option<&'a str> {
        text.get(..self.first_row_end)
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.values.len() / self.width
    }

    /// Values of each row; at least 1.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The values of the rows at this place, counted from 0; `text` is the statement's.
    pub fn column<'a>(
        &'a self,
        place: usize,
        text: &'a str,
    ) -> impl Iterator<Item = Option<ValueLiteral<'a>>> {
        let places = self.values.iter().skip(place).step_by(self.width);
        places.map(move |place| place.literal(text))
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<Place>()
    }
}

impl Place {
    fn literal<'a>(&self, text: &'a str) -> Option<ValueLiteral<'a>> {
        let written = text.get(self.start as usize..self.end as usize)?;
        let quoted = |escaped: bool| match escaped {
            true => Cow::Owned(written.replace("''", "'")),
            false => Cow::Borrowed(written),
        };
        Some(match self.kind {
            Kind::Null => ValueLiteral::Null,
            Kind::True => ValueLiteral::Boolean(true),
            Kind::False => ValueLiteral::Boolean(false),
            Kind::Number => ValueLiteral::Number { text: written, negative: false },
            Kind::Negative => ValueLiteral::Number { text: written, negative: true },
            Kind::Text { escaped } => ValueLiteral::Text(quoted(escaped)),
            Kind::Date { escaped } => ValueLiteral::Date(quoted(escaped)),
            Kind::Timestamp { escaped } => ValueLiteral::Timestamp(quoted(escaped)),
        })
    }
}

/// Reads a text from the left; `None` wherever it finds something else than it was asked for.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }

    fn next(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.next(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn sign(&mut self, sign: u8) -> Option<()> {
        self.blanks();
        (self.next()? == sign).then(|| self.at += 1)
    }

    /// A word of ASCII letters, digits and `_`, which begins with no digit.
    fn any_word(&mut self) -> Option<&'a [u8]> {
        self.blanks();
        let rest = self.bytes.get(self.at..)?;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = rest.iter().take_while(|byte| is_part(byte)).count();
        let word = rest.get(..length).filter(|word| {
            word.first().is_some_and(|first| !first.is_ascii_digit())
                && rest.get(length).is_none_or(|next| next.is_ascii() && *next != b'$')
        })?;
        self.at += length;
        Some(word)
    }

    fn word(&mut self, expected: &str) -> Option<()> {
        let at = self.at;
        let found = self.any_word().filter(|word| word.eq_ignore_ascii_case(expected.as_bytes()));
        if found.is_none() {
            self.at = at;
        }
        found.map(drop)
    }

    /// `INSERT INTO name (columns) VALUES`
    fn head(&mut self) -> Option<()> {
        self.word("INSERT")?;
        self.word("INTO")?;
        self.name()?;
        while self.sign(b'.').is_some() {
            self.name()?;
        }
        if self.sign(b'(').is_some() {
            self.name()?;
            while self.sign(b',').is_some() {
                self.name()?;
            }
            self.sign(b')')?;
        }
        self.word("VALUES")
    }

    /// A name, perhaps in quotes.
    fn name(&mut self) -> Option<()> {
        if self.sign(b'"').is_none() {
            return self.any_word().map(drop);
        }
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == b'"')?;
        self.at += length + 1;
        // A quote in the name is left to the parser.
        (self.next()? != b'"').then_some(())
    }

    fn row(&mut self, values: &mut Vec<Place>) -> Option<()> {
        self.sign(b'(')?;
        loop {
            values.push(self.value()?);
            self.blanks();
            let next = self.next()?;
            self.at += 1;
            match next {
                b',' => {}
                b')' => return Some(()),
                _ => return None,
            }
        }
    }

    fn value(&mut self) -> Option<Place> {
        self.blanks();
        match self.next()? {
            b'\'' => self.quoted(|escaped| Kind::Text { escaped }),
            b'-' => {
                self.at += 1;
                self.number(Kind::Negative)
            }
            b'0'..=b'9' => self.number(Kind::Number),
            _ => {
                let word = self.any_word()?;
                let is = |other: &str| word.eq_ignore_ascii_case(other.as_bytes());
                let plain = |kind| Some(Place { kind, start: 0, end: 0 });
                match word.len() {
                    4 if is("NULL") => plain(Kind::Null),
                    4 if is("TRUE") => plain(Kind::True),
                    5 if is("FALSE") => plain(Kind::False),
                    4 if is("DATE") => self.quoted(|escaped| Kind::Date { escaped }),
                    9 if is("TIMESTAMP") => self.quoted(|escaped| Kind::Timestamp { escaped }),
                    _ => None,
                }
            }
        }
    }

    /// Digits with at most one point, which has digits on both sides.
    fn number(&mut self, kind: Kind) -> Option<Place> {
        let start = self.at;
        self.digits()?;
        if self.next() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        // Not `1e5`, `0x1`, `1_000`.
        let ends = !self.next()?.is_ascii_alphanumeric() && self.next()? != b'_';
        ends.then_some(())?;
        self.place(kind, start, self.at)
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.next().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn quoted(&mut self, kind: impl Fn(bool) -> Kind) -> Option<Place> {
        self.sign(b'\'')?;
        let (start, mut escaped) = (self.at, false);
        loop {
            let rest = self.bytes.get(self.at..)?;
            self.at += rest.iter().position(|byte| *byte == b'\'')? + 1;
            if self.next() != Some(b'\'') {
                break;
            }
            escaped = true;
            self.at += 1;
        }
        self.place(kind(escaped), start, self.at - 1)
    }

    fn place(&self, kind: Kind, start: usize, end: usize) -> Option<Place> {
        Some(Place { kind, start: u32::try_from(start).ok()?, end: u32::try_from(end).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::ast::{
        DataType, Expr, SetExpr, Statement, UnaryOperator, Value,
    };
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;
    use proptest::prelude::*;

    use super::*;

    type Rows = Vec<Vec<ValueLiteral<'static>>>;

    fn owned(value: ValueLiteral<'_>) -> ValueLiteral<'static> {
        match value {
            // A number is told by its sign and digits.
            ValueLiteral::Number { text, negative } => {
                ValueLiteral::Number { text: String::leak(text.to_owned()), negative }
            }
            ValueLiteral::Text(text) => ValueLiteral::Text(text.into_owned().into()),
            ValueLiteral::Date(text) => ValueLiteral::Date(text.into_owned().into()),
            ValueLiteral::Timestamp(text) => ValueLiteral::Timestamp(text.into_owned().into()),
            ValueLiteral::Null => ValueLiteral::Null,
            ValueLiteral::Boolean(value) => ValueLiteral::Boolean(value),
        }
    }

    fn scanned(text: &str) -> Option<Rows> {
        let rows = ValueRows::of(text)?;
        let mut out = vec![Vec::new(); rows.count()];
        for place in 0..rows.width() {
            for (row, value) in out.iter_mut().zip(rows.column(place, text)) {
                row.push(owned(value?));
            }
        }
        Some(out)
    }

    /// What a parsed expression is: a second reading on purpose, so that the parser is what the scanner is compared with.
    fn literal(expr: &Expr) -> Option<ValueLiteral<'static>> {
        match expr {
            Expr::Value(value) => match &value.value {
                Value::Number(text, false) => {
                    Some(owned(ValueLiteral::Number { text, negative: false }))
                }
                Value::SingleQuotedString(text) => Some(ValueLiteral::Text(text.clone().into())),
                Value::Boolean(value) => Some(ValueLiteral::Boolean(*value)),
                Value::Null => Some(ValueLiteral::Null),
                _ => None,
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match literal(expr)? {
                ValueLiteral::Number { text, negative: false } => {
                    Some(ValueLiteral::Number { text, negative: true })
                }
                _ => None,
            },
            Expr::TypedString(typed) => {
                let Value::SingleQuotedString(text) = &typed.value.value else { return None };
                match typed.data_type {
                    DataType::Date => Some(ValueLiteral::Date(text.clone().into())),
                    DataType::Timestamp(None, _) => {
                        Some(ValueLiteral::Timestamp(text.clone().into()))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What the parser makes of it; `None` for what is not all literals, or an error.
    fn parsed(text: &str) -> Option<Rows> {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?;
        let Statement::Insert(insert) = statements.pop().filter(|_| statements.is_empty())? else {
            return None;
        };
        let SetExpr::Values(values) = insert.source?.body.as_ref().clone() else { return None };
        values.rows.iter().map(|row| row.content.iter().map(literal).collect()).collect()
    }

    #[test]
    fn what_is_read_is_what_the_parser_reads() {
        for text in [
            "INSERT INTO t VALUES (1, -2.50, 'a', NULL, true, FALSE), (3,4,'it''s','''','',null)",
            "insert into \"S\".t (a, \"B c\")\nvalues\n  (DATE '2026-01-31' , 'ü'),\t(timestamp '2026-01-31 12:00:00','\\')",
            "INSERT INTO a.b.c(x) VALUES(007)",
        ] {
            assert!(scanned(text).is_some(), "{text}");
            assert_eq!(scanned(text), parsed(text), "{text}");
        }
        let text = "INSERT INTO t (a) VALUES ( ')' ) , (2)";
        let rows = ValueRows::of(text).unwrap();
        assert_eq!(rows.with_first_row(text), Some("INSERT INTO t (a) VALUES ( ')' )"));
        assert_eq!((rows.count(), rows.width()), (2, 1));
    }

    #[test]
    fn all_else_is_left_to_the_parser() {
        for text in [
            "INSERT INTO t VALUES (1), (2, 3)",
            "INSERT INTO t VALUES (1) RETURNING a",
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
            "INSERT INTO t VALUES (1); DELETE FROM t",
            "INSERT INTO t VALUES (1), (now())",
            "INSERT INTO t VALUES (1 + 1)",
            "INSERT INTO t VALUES (1e5)",
            "INSERT INTO t VALUES (1.)",
            "INSERT INTO t VALUES (.5)",
            "INSERT INTO t VALUES (0x1F)",
            "INSERT INTO t VALUES (1_000)",
            "INSERT INTO t VALUES (- -1)",
            "INSERT INTO t VALUES (+1)",
            "INSERT INTO t VALUES ('a' 'b')",
            "INSERT INTO t VALUES (E'a\\n')",
            "INSERT INTO t VALUES ('a'::text)",
            "INSERT INTO t VALUES (DEFAULT)",
            "INSERT INTO t VALUES ($1)",
            "INSERT INTO t VALUES (1) -- end",
            "INSERT INTO t VALUES (1, /* two */ 2)",
            "INSERT INTO t VALUES ()",
            "INSERT INTO t VALUES (1",
            "INSERT INTO t VALUES ('a",
            "INSERT INTO t AS x VALUES (1)",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (1)",
            "INSERT INTO \"a\"\"b\" VALUES (1)",
            "INSERT OVERWRITE t VALUES (1)",
            "INSERT INTO tü VALUES (1)",
            "INSERT INTO t VALUES (nullü)",
            "INSERT INTO t VALUES (TIMESTAMPTZ '2026-01-31')",
            "INSERT INTO t VALUES (INTERVAL '1 day')",
        ] {
            assert!(ValueRows::of(text).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_others_than_the_parser(parts in proptest::collection::vec(
            prop_oneof![
                Just("("), Just(")"), Just(","), Just(", "), Just("),("), Just("-"), Just("1"),
                Just("2.5"), Just("."), Just("e"), Just("'"), Just("''"), Just("'x'"), Just("NULL"),
                Just("true"), Just("DATE "), Just("timestamp'2026-01-01'"), Just(" "), Just("\n"),
                Just("--"), Just("/*"), Just("\\"), Just("ü"), Just("x"), Just("$1"), Just("::text"),
            ],
            0..24,
        )) {
            let text = format!("INSERT INTO t VALUES ({})", parts.concat());
            if let Some(rows) = scanned(&text) {
                let expected = parsed(&text);
                prop_assert_eq!(Some(rows), expected, "{}", text);
            }
        }
    }
}
