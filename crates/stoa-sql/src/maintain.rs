//! `FLUSH TABLE name`, `COMPACT TABLE name [FULL]`, `EXPIRE SNAPSHOTS FROM name`, `APPLY RETENTION TO name`.

use datafusion_sql::sqlparser::ast::ObjectName;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;

use crate::statement::StatementKind;
use crate::{Parsed, parse_word};

/// A statement that looks after a table.
#[derive(Clone, Debug)]
pub struct Maintenance {
    /// The table.
    pub table: ObjectName,
    /// What is to be done.
    pub work: MaintenanceWork,
}

/// What is to be done with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceWork {
    /// Rows that are only in the log are written to files, where other engines see them.
    Flush,
    /// Few sorted files instead of many.
    Compact {
        /// One sorted run per table partition, however large the files are already.
        full: bool,
    },
    /// Old snapshots are forgotten, and files deleted that only they needed.
    Expire,
    /// Table partitions older than the table's property says are removed.
    Retain,
}

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
        "COMPACT" => MaintenanceWork::Compact { full: parser.parse_keyword(Keyword::FULL) },
        "FLUSH" => MaintenanceWork::Flush,
        "EXPIRE" => MaintenanceWork::Expire,
        _ => MaintenanceWork::Retain,
    };
    Ok(StatementKind::Maintain(Maintenance { table, work }))
}
