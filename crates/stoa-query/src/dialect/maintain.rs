//! `FLUSH TABLE name`, `COMPACT TABLE name [FULL]`, `EXPIRE SNAPSHOTS FROM name`, `APPLY RETENTION TO name`.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;

use super::{Parsed, parse_word};
use crate::maintain::{Maintenance, Work};
use crate::statement::StatementKind;

/// Parses what follows the first word.
pub(super) fn parse(parser: &mut Parser<'_>, word: &str) -> Parsed<StatementKind> {
    let words: [&str; 2] = match word {
        "COMPACT" | "FLUSH" => ["TABLE", ""],
        "EXPIRE" => ["SNAPSHOTS", "FROM"],
        _ => ["RETENTION", "TO"],
    };
    for expected in words.into_iter().filter(|expected| !expected.is_empty()) {
        if !parse_word(parser, expected) {
            let found = parser.peek_token();
            return parser.expected(&format!("{expected} after {word}"), found);
        }
    }
    let table = parser.parse_object_name(false)?;
    let work = match word {
        "COMPACT" => Work::Compact { full: parser.parse_keyword(Keyword::FULL) },
        "FLUSH" => Work::Flush,
        "EXPIRE" => Work::Expire,
        _ => Work::Retain,
    };
    Ok(StatementKind::Maintain(Maintenance { table, work }))
}
