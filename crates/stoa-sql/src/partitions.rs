//! Statements about partitions of a table, whose columns are in `PARTITIONED BY`.
//!
//! ```text
//! ALTER TABLE name DROP [IF EXISTS] PARTITION (column op value, …), PARTITION (…)
//! ALTER TABLE name ADD [IF NOT EXISTS] PARTITION (column = value, …) PARTITION (…)
//! ALTER TABLE name TRUNCATE PARTITION (column = value, …)
//! ALTER TABLE name RECOVER PARTITIONS
//! SHOW PARTITION NAMES FROM name [PARTITION (column = value, …)]
//! DESCRIBE name PARTITION (column = value, …)
//! ```
//! Values are kept as texts: what they are depends on the columns.

use datafusion_sql::sqlparser::ast::{ObjectName, Value};
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;

use crate::statement::StatementKind;
use crate::{Parsed, normalise};

/// The text that means NULL, as Hive writes it.
pub const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// A statement that changes partitions.
#[derive(Clone, Debug)]
pub struct PartitionStatement {
    /// The table.
    pub table: ObjectName,
    /// What is to be done.
    pub work: PartitionWork,
    /// With which of them.
    pub specs: Vec<PartitionSpec>,
}

/// What is to be done with partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionWork {
    /// Their rows are deleted.
    Drop,
    /// Nothing: a partition is there when it has rows.
    Add {
        /// Whether one that is there is no error.
        if_not_exists: bool,
    },
    /// Their rows are deleted; at least one must be there.
    Truncate,
    /// Nothing, for tables whose files Stoa knows.
    Recover,
}

/// Conditions that all hold for a partition.
pub type PartitionSpec = Vec<PartitionTerm>;

/// A condition on a partition column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTerm {
    /// The column.
    pub column: String,
    /// How its value is compared.
    pub comparison: Comparison,
    /// With what; `None` is NULL.
    pub value: Option<String>,
}

/// A comparison, as SQL writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are called as they are")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The operator.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// Parses what follows `ALTER TABLE name`; `None` where it is about something else.
pub(super) fn parse_alter(
    parser: &mut Parser<'_>,
    table: &ObjectName,
) -> Parsed<Option<StatementKind>> {
    let Some((work, words)) = work_ahead(parser) else { return Ok(None) };
    for _ in 0..words {
        parser.next_token();
    }
    if work == PartitionWork::Recover {
        return Ok(Some(statement(table, work, Vec::new())));
    }
    let mut specs = Vec::new();
    while is_partition(&parser.peek_token_ref().token) {
        parser.next_token();
        specs.push(parse_spec(parser)?);
        let _ = parser.consume_token(&Token::Comma);
    }
    let _ = parser.parse_keyword(Keyword::PURGE);
    Ok(Some(statement(table, work, specs)))
}

/// What is to be done, and how many words say so before the first `PARTITION (`. Nothing is taken: columns may be called
/// as these words are.
fn work_ahead(parser: &Parser<'_>) -> Option<(PartitionWork, usize)> {
    let (add, if_not_exists) = (PartitionWork::Add { if_not_exists: false }, true);
    let forms: [(&[&str], PartitionWork); 6] = [
        (&["RECOVER", "PARTITIONS"], PartitionWork::Recover),
        (&["TRUNCATE"], PartitionWork::Truncate),
        (&["DROP"], PartitionWork::Drop),
        (&["DROP", "IF", "EXISTS"], PartitionWork::Drop),
        (&["ADD"], add),
        (&["ADD", "IF", "NOT", "EXISTS"], PartitionWork::Add { if_not_exists }),
    ];
    let is_ahead = |(words, work): &(&[&str], PartitionWork)| {
        let count = words.len();
        let are_next = words.iter().enumerate().all(|(at, word)| is_word_at(parser, at, word));
        let behind = &parser.peek_nth_token(count).token;
        let is_whole = match work {
            PartitionWork::Recover => matches!(behind, Token::EOF | Token::SemiColon),
            _ => is_partition(behind) && parser.peek_nth_token(count + 1).token == Token::LParen,
        };
        are_next && is_whole
    };
    forms.iter().find(|form| is_ahead(form)).map(|(words, work)| (*work, words.len()))
}

fn is_word_at(parser: &Parser<'_>, at: usize, word: &str) -> bool {
    match &parser.peek_nth_token(at).token {
        Token::Word(found) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
        _ => false,
    }
}

fn statement(table: &ObjectName, work: PartitionWork, specs: Vec<PartitionSpec>) -> StatementKind {
    StatementKind::Partitions(PartitionStatement { table: table.clone(), work, specs })
}

fn is_partition(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::PARTITION)
}

/// `[PARTITION (…)]`; empty where it is missing.
pub(super) fn parse_optional(parser: &mut Parser<'_>) -> Parsed<PartitionSpec> {
    match parser.parse_keyword(Keyword::PARTITION) {
        true => parse_spec(parser),
        false => Ok(Vec::new()),
    }
}

fn parse_spec(parser: &mut Parser<'_>) -> Parsed<PartitionSpec> {
    parser.expect_token(&Token::LParen)?;
    let spec = parser.parse_comma_separated(parse_term)?;
    parser.expect_token(&Token::RParen)?;
    Ok(spec)
}

fn parse_term(parser: &mut Parser<'_>) -> Parsed<PartitionTerm> {
    let column = normalise(&parser.parse_identifier()?);
    let found = parser.next_token();
    let comparison = match found.token {
        Token::Eq => Comparison::Equal,
        Token::Neq => Comparison::NotEqual,
        Token::Lt => Comparison::Less,
        Token::LtEq => Comparison::LessOrEqual,
        Token::Gt => Comparison::Greater,
        Token::GtEq => Comparison::GreaterOrEqual,
        _ => return parser.expected("=, <>, <, <=, > or >=", found),
    };
    let value = parse_value(parser)?.filter(|value| value != NULL_PARTITION);
    Ok(PartitionTerm { column, comparison, value })
}

fn parse_value(parser: &mut Parser<'_>) -> Parsed<Option<String>> {
    // `DATE '2025-01-01'` is the text of it.
    let _ = parser.parse_one_of_keywords(&[Keyword::DATE, Keyword::TIMESTAMP]);
    let sign = if parser.consume_token(&Token::Minus) { "-" } else { "" };
    let found = parser.peek_token();
    Ok(match parser.parse_value()?.value {
        Value::Null => None,
        Value::Number(number, _) => Some(format!("{sign}{number}")),
        Value::Boolean(value) => Some(value.to_string()),
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text),
        _ => return parser.expected("a value", found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ShowStatement, parse};

    fn kind(sql: &str) -> StatementKind {
        parse(sql, |_| Ok(None)).unwrap().remove(0).kind
    }

    fn changes(sql: &str) -> (PartitionWork, Vec<String>) {
        let StatementKind::Partitions(statement) = kind(sql) else { panic!("{sql}") };
        let term = |term: &PartitionTerm| {
            let value = term.value.as_deref().unwrap_or("NULL");
            format!("{} {} {value}", term.column, term.comparison.sql())
        };
        let spec = |spec: &PartitionSpec| spec.iter().map(term).collect::<Vec<_>>().join(", ");
        (statement.work, statement.specs.iter().map(spec).collect())
    }

    #[test]
    fn partitions_are_named_by_conditions() {
        let found = changes(
            "ALTER TABLE t DROP IF EXISTS PARTITION (a = 'x', B >= -1), PARTITION (a <> NULL)",
        );
        let expected = ["a = x", "b >= -1"].join(", ");
        assert_eq!(found, (PartitionWork::Drop, vec![expected, "a <> NULL".to_owned()]));
        let found = changes("ALTER TABLE t ADD IF NOT EXISTS PARTITION (a = 1) PARTITION (a = 2)");
        let expected = vec!["a = 1".to_owned(), "a = 2".to_owned()];
        assert_eq!(found, (PartitionWork::Add { if_not_exists: true }, expected));
        let found = changes("ALTER TABLE t TRUNCATE PARTITION (a = DATE '2025-01-01')");
        assert_eq!(found, (PartitionWork::Truncate, vec!["a = 2025-01-01".to_owned()]));
        assert_eq!(changes("ALTER TABLE t RECOVER PARTITIONS").0, PartitionWork::Recover);
        let default = changes("ALTER TABLE t DROP PARTITION (a = '__HIVE_DEFAULT_PARTITION__')");
        assert_eq!(default.1, ["a = NULL"]);
    }

    #[test]
    fn columns_may_be_called_so() {
        let is_alter = |sql: &str| matches!(kind(sql), StatementKind::AlterTable(_));
        assert!(is_alter("ALTER TABLE t DROP partition"));
        assert!(is_alter("ALTER TABLE t DROP COLUMN IF EXISTS partition, ADD recover int"));
        assert!(is_alter("ALTER TABLE t ADD IF NOT EXISTS a int"));
        assert!(is_alter("ALTER TABLE t ADD COLUMN m int"));
        assert!(is_alter("ALTER TABLE t ADD m int, DROP COLUMN n"));
        assert!(is_alter("ALTER TABLE t DROP COLUMN IF EXISTS n"));
        assert!(is_alter("ALTER TABLE t OWNER TO ann"));
    }

    #[test]
    fn lists_take_conditions() {
        let StatementKind::Show(ShowStatement::PartitionNames { only, .. }) =
            kind("SHOW PARTITION NAMES FROM t PARTITION (a = 'x')")
        else {
            panic!()
        };
        assert_eq!(only.len(), 1);
        for sql in ["SHOW PARTITION NAMES FROM t", "DESCRIBE t PARTITION (a = 1)"] {
            assert!(matches!(kind(sql), StatementKind::Show(_)), "{sql}");
        }
    }
}
