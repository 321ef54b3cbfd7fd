//! `LOAD DATA [LOCAL] INPATH 'path' [OVERWRITE] INTO TABLE name [PARTITION (column = value, …)]`, as Hive and Spark spell it.

use datafusion_sql::sqlparser::ast::ObjectName;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;

use crate::partitions::{self, PartitionSpec};
use crate::statement::StatementKind;
use crate::{Parsed, parse_word};

/// A load of files of the server.
#[derive(Clone, Debug)]
pub struct LoadDataStatement {
    /// A file, or a directory of files.
    pub path: String,
    /// Whether the rows take the place of those that are there.
    pub overwrites: bool,
    /// The table.
    pub table: ObjectName,
    /// The values of partition columns, which the files do not have.
    pub partition: PartitionSpec,
}

/// Parses what follows `LOAD`.
pub(super) fn parse(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    if !parse_word(parser, "DATA") {
        let found = parser.peek_token();
        return parser.expected("DATA after LOAD", found);
    }
    let _ = parser.parse_keyword(Keyword::LOCAL);
    if !parse_word(parser, "INPATH") {
        let found = parser.peek_token();
        return parser.expected("INPATH 'path'", found);
    }
    let path = parser.parse_literal_string()?;
    let overwrites = parser.parse_keyword(Keyword::OVERWRITE);
    parser.expect_keyword(Keyword::INTO)?;
    parser.expect_keyword(Keyword::TABLE)?;
    let table = parser.parse_object_name(false)?;
    let partition = partitions::parse_optional(parser)?;
    Ok(StatementKind::LoadData(LoadDataStatement { path, overwrites, table, partition }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse as parse_all;

    #[test]
    fn hive_and_spark_spell_it_so() {
        let sql = "LOAD DATA LOCAL INPATH '/x' OVERWRITE INTO TABLE d.t PARTITION (a = 1)";
        let StatementKind::LoadData(load) = parse_all(sql, |_| Ok(None)).unwrap().remove(0).kind
        else {
            panic!()
        };
        assert_eq!((load.path.as_str(), load.overwrites, load.partition.len()), ("/x", true, 1));
        assert_eq!(load.table.to_string(), "d.t");
        for wrong in ["LOAD", "LOAD DATA '/x' INTO TABLE t", "LOAD DATA INPATH '/x' TABLE t"] {
            assert_eq!(parse_all(wrong, |_| Ok(None)).unwrap_err().sqlstate(), "42601", "{wrong}");
        }
    }
}
