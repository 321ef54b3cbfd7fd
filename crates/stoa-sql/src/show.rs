//! `SHOW …` and `DESCRIBE`.

use datafusion_sql::sqlparser::ast::ObjectName;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;

use crate::partitions::{self, PartitionSpec};
use crate::statement::StatementKind;
use crate::{Parsed, literal, parse_word};

/// What to show.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are named as in the syntax above them")]
pub enum ShowStatement {
    /// `SHOW TABLES [IN namespace] [LIKE like]`
    Tables { namespace: Option<ObjectName>, like: Option<String> },
    /// `SHOW RESOURCE PLANS`
    ResourcePlans,
    /// `SHOW RESOURCE PLAN name`
    ResourcePlan { name: String },
    /// `ALTER RESOURCE PLAN name VALIDATE`: what is wrong with it
    ResourcePlanProblems { name: String },
    /// `LIST FILES`: files of the session for scripts
    ScriptFiles,
    /// `SHOW SCHEMAS [LIKE like]`
    Schemas { like: Option<String> },
    /// `SHOW COLUMNS FROM table`
    Columns { table: ObjectName },
    /// `DESCRIBE [EXTENDED] table [PARTITION (…)]`
    Describe { table: ObjectName, extended: bool, partition: PartitionSpec },
    /// `SHOW CREATE TABLE table`
    CreateTable { table: ObjectName },
    /// `SHOW FILES FROM table`
    Files { table: ObjectName },
    /// `SHOW PARTITIONS table`
    Partitions { table: ObjectName },
    /// `SHOW PARTITION NAMES FROM table [PARTITION (…)]`
    PartitionNames { table: ObjectName, only: PartitionSpec },
    /// `SHOW SNAPSHOTS FROM table`
    Snapshots { table: ObjectName },
    /// A session setting; `all` for every one.
    Setting { name: String },
}

pub(super) fn parse_show(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    let show = if parser.parse_keyword(Keyword::TABLES) {
        let namespace = match parser.parse_one_of_keywords(&[Keyword::IN, Keyword::FROM]) {
            Some(_) => Some(parser.parse_object_name(false)?),
            None => None,
        };
        ShowStatement::Tables { namespace, like: parse_like(parser)? }
    } else if parse_word(parser, "SCHEMAS")
        || parse_word(parser, "DATABASES")
        || parse_word(parser, "NAMESPACES")
    {
        ShowStatement::Schemas { like: parse_like(parser)? }
    } else if parser.parse_keyword(Keyword::COLUMNS) {
        ShowStatement::Columns { table: parse_of(parser)? }
    } else if parser.parse_keywords(&[Keyword::CREATE, Keyword::TABLE]) {
        ShowStatement::CreateTable { table: parser.parse_object_name(false)? }
    } else if parse_word(parser, "FILES") {
        ShowStatement::Files { table: parse_of(parser)? }
    } else if parse_word(parser, "PARTITIONS") {
        ShowStatement::Partitions { table: parse_of(parser)? }
    } else if parser.parse_keyword(Keyword::PARTITION) {
        if !parse_word(parser, "NAMES") {
            let found = parser.peek_token();
            return parser.expected("NAMES after PARTITION", found);
        }
        let table = parse_of(parser)?;
        ShowStatement::PartitionNames { table, only: partitions::parse_optional(parser)? }
    } else if parse_word(parser, "SNAPSHOTS") {
        ShowStatement::Snapshots { table: parse_of(parser)? }
    } else {
        return parse_setting(parser);
    };
    Ok(StatementKind::Show(show))
}

pub(super) fn parse_describe(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    let extended =
        parser.parse_keyword(Keyword::EXTENDED) || parser.parse_keyword(Keyword::FORMATTED);
    let _ = parser.parse_keyword(Keyword::TABLE);
    let table = parser.parse_object_name(false)?;
    let partition = partitions::parse_optional(parser)?;
    Ok(StatementKind::Show(ShowStatement::Describe { table, extended, partition }))
}

fn parse_of(parser: &mut Parser<'_>) -> Parsed<ObjectName> {
    let _ = parser.parse_one_of_keywords(&[Keyword::IN, Keyword::FROM]);
    parser.parse_object_name(false)
}

fn parse_like(parser: &mut Parser<'_>) -> Parsed<Option<String>> {
    match parser.parse_keyword(Keyword::LIKE) {
        true => Ok(Some(parser.parse_literal_string()?)),
        false => Ok(None),
    }
}

fn parse_setting(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    if parser.parse_keywords(&[Keyword::TIME, Keyword::ZONE]) {
        return Ok(StatementKind::Show(ShowStatement::Setting { name: "timezone".into() }));
    }
    if parser.parse_keywords(&[Keyword::TRANSACTION, Keyword::ISOLATION, Keyword::LEVEL]) {
        let name = "transaction_isolation".to_owned();
        return Ok(StatementKind::Show(ShowStatement::Setting { name }));
    }
    if parser.peek_token_ref().token == Token::EOF {
        let found = parser.peek_token();
        return parser
            .expected("TABLES, SCHEMAS, COLUMNS, CREATE TABLE, FILES or a setting", found);
    }
    let name = literal::parse_option_name(parser)?;
    Ok(StatementKind::Show(ShowStatement::Setting { name }))
}
