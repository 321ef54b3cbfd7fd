//! `INSERT OVERWRITE TABLE name PARTITION (column = value, …) IF NOT EXISTS …`: rows for a partition that has none yet.

use datafusion_sql::sqlparser::ast::ObjectName;
use datafusion_sql::sqlparser::dialect::GenericDialect;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use stoa_error::{Error, Result};

use crate::lexer::Lexer;
use crate::partitions::{self, PartitionSpec};
use crate::{Bounded, Parsed, Rewrite, Statement, StatementKind, from_parser_raw, parse_kind};

/// An INSERT that does nothing if the partition has rows.
#[derive(Clone, Debug)]
pub struct InsertIfAbsentStatement {
    /// The table.
    pub table: ObjectName,
    /// The partition.
    pub partition: PartitionSpec,
    /// The INSERT without the condition.
    pub insert: Statement,
}

/// Where `IF NOT EXISTS` stands in a text that begins with `INSERT`: behind a parenthesis that is before the rows.
fn clause(text: &str) -> Option<std::ops::Range<usize>> {
    let tokens: Vec<_> = Lexer::new(text).filter(|token| token.is_significant()).collect();
    let is_rows = |word: &&str| ["SELECT", "VALUES", "WITH", "FROM"].contains(word);
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let word = token.text.to_ascii_uppercase();
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if is_rows(&word.as_str()) => return None,
            _ if depth == 0 && token.is_word("if") => {
                let [not, exists] = [tokens.get(at + 1)?, tokens.get(at + 2)?];
                let is_clause = not.is_word("not") && exists.is_word("exists");
                return (is_clause && at > 0 && tokens[at - 1].is_sign(')'))
                    .then(|| token.at..exists.end());
            }
            _ => {}
        }
    }
    None
}

/// Whether a text that begins with `INSERT` is such a statement.
pub(super) fn is_in(text: &str) -> bool {
    clause(text).is_some()
}

/// Parses the statement.
///
/// # Errors
/// 42601: the partition is not named by its values, or the rest is no INSERT.
pub(super) fn parse(text: &str, others: Rewrite) -> Result<StatementKind> {
    let Some(clause) = clause(text) else { return Err(wrong("IF NOT EXISTS")) };
    let (table, partition) = head(text).map_err(|e| from_parser_raw(e, text))?;
    let insert = format!("{}{}", &text[..clause.start], &text[clause.end..]);
    match parse_kind(&insert, others)? {
        kind @ StatementKind::Plan(_) => {
            let insert = Statement { text: insert, kind };
            let statement = InsertIfAbsentStatement { table, partition, insert };
            Ok(StatementKind::InsertIfAbsent(Box::new(statement)))
        }
        _ => Err(wrong("a query or VALUES")),
    }
}

fn head(text: &str) -> Parsed<(ObjectName, PartitionSpec)> {
    let dialect = Bounded::new(GenericDialect {}, text.len());
    let mut parser = Parser::new(&dialect).try_with_sql(text)?;
    parser.expect_keywords(&[Keyword::INSERT, Keyword::OVERWRITE])?;
    let _ = parser.parse_keyword(Keyword::TABLE);
    let table = parser.parse_object_name(false)?;
    Ok((table, partitions::parse_optional(&mut parser)?))
}

fn wrong(wanted: &str) -> Error {
    Error::invalid("syntax error in INSERT OVERWRITE … IF NOT EXISTS")
        .with_sqlstate("42601")
        .with_hint(format!(
            "expected {wanted}: INSERT OVERWRITE TABLE t PARTITION (p = 1) IF NOT EXISTS SELECT …"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse as parse_all;

    #[test]
    fn the_clause_stands_before_the_rows() {
        let text = "INSERT OVERWRITE TABLE a.t PARTITION (p = 1, q = 'x') IF NOT EXISTS SELECT 1";
        let StatementKind::InsertIfAbsent(found) =
            parse_all(text, |_| Ok(None)).unwrap().remove(0).kind
        else {
            panic!("{text}")
        };
        assert_eq!(found.table.to_string(), "a.t");
        let values: Vec<_> = found.partition.iter().map(|term| term.value.as_deref()).collect();
        assert_eq!(values, [Some("1"), Some("x")]);
        assert!(!found.insert.text.contains("EXISTS"), "{}", found.insert.text);
        for other in [
            "INSERT INTO t SELECT 1 WHERE x IF NOT EXISTS",
            "INSERT INTO t (if, not, exists) VALUES (1, 2, 3)",
            "INSERT INTO t VALUES (1)",
        ] {
            assert!(!is_in(other), "{other}");
        }
        for wrong in [
            "INSERT INTO t PARTITION (p = 1) IF NOT EXISTS SELECT 1",
            "INSERT OVERWRITE TABLE t PARTITION (p) IF NOT EXISTS SELECT 1",
        ] {
            assert_eq!(parse_all(wrong, |_| Ok(None)).unwrap_err().sqlstate(), "42601", "{wrong}");
        }
    }
}
