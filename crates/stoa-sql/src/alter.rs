//! `ALTER TABLE`, in PostgreSQL's and Spark's spellings.

use arrow::datatypes::{DataType, Field};
use datafusion_sql::sqlparser::ast::ObjectName;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;
use stoa_table::{DeclaredType, SortTerm};

use crate::create_table::{parse_column, parse_declared_type, parse_sort_terms};
use crate::session::skip_rest;
use crate::statement::StatementKind;
use crate::{Parsed, defaults, literal, normalise, parse_word, partitions};

/// A parsed `ALTER TABLE`.
#[derive(Clone, Debug)]
pub struct AlterTableStatement {
    /// The table.
    pub name: ObjectName,
    /// Whether a missing table is no error.
    pub if_exists: bool,
    /// What is changed, in order.
    pub actions: Vec<AlterAction>,
}

/// One change; several in one statement are one commit.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are named as in the syntax above them")]
pub enum AlterAction {
    /// `RENAME TO to`
    RenameTable { to: ObjectName },
    /// `RENAME COLUMN from TO to`
    RenameColumn { from: String, to: String },
    /// `ADD COLUMN [IF NOT EXISTS] field`
    AddColumn { field: Field, if_not_exists: bool },
    /// `DROP COLUMN [IF EXISTS] name`
    DropColumn { name: String, if_exists: bool },
    /// `ALTER COLUMN name TYPE data_type`
    ChangeType { name: String, data_type: DataType, declared: Option<DeclaredType> },
    /// `ALTER COLUMN name DROP NOT NULL`
    DropNotNull { name: String },
    /// `ALTER COLUMN name SET DEFAULT default`, or `DROP DEFAULT`
    SetDefault { name: String, default: Option<String> },
    /// `SET TBLPROPERTIES (key = value, …)`
    SetProperties(Vec<(String, String)>),
    /// `UNSET TBLPROPERTIES (key, …)`
    UnsetProperties(Vec<String>),
    /// `SORTED BY (term, …)`; none of them: unsorted.
    SetSortOrder(Vec<SortTerm>),
    /// `CREATE TAG [IF NOT EXISTS] name [AS OF VERSION snapshot_id]`
    CreateTag { name: String, if_not_exists: bool, snapshot_id: Option<i64> },
    /// `DROP TAG [IF EXISTS] name`
    DropTag { name: String, if_exists: bool },
    /// `ROLLBACK TO VERSION snapshot_id | 'tag'`, `ROLLBACK TO TIMESTAMP 'time'`, or Hive's `EXECUTE ROLLBACK (…)`
    RollBack(RollBackTarget),
    /// `OWNER TO role`
    SetOwner(String),
    /// What tables cannot have: the clause's name.
    Unsupported(&'static str),
}

/// What a table is rolled back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollBackTarget {
    /// The snapshot with this id.
    Snapshot(i64),
    /// The snapshot that a tag or branch names.
    Named(String),
    /// What was current at this time, in the session's time zone unless it names one.
    Time(String),
}

/// The clause, where a constraint follows `ADD` and no column.
fn constraint(parser: &Parser<'_>) -> Option<&'static str> {
    let word = |at: usize| match parser.peek_nth_token(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match (word(0), word(1)) {
        (Keyword::CONSTRAINT, _) => Some("ADD CONSTRAINT"),
        (Keyword::PRIMARY, Keyword::KEY) => Some("ADD PRIMARY KEY"),
        (Keyword::FOREIGN, Keyword::KEY) => Some("ADD FOREIGN KEY"),
        (Keyword::UNIQUE | Keyword::CHECK, _)
            if parser.peek_nth_token(1).token == Token::LParen =>
        {
            Some("ADD UNIQUE or CHECK")
        }
        _ => None,
    }
}

pub(super) fn parse(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    parser.expect_keyword(Keyword::TABLE)?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let _ = parser.parse_keyword(Keyword::ONLY);
    let name = parser.parse_object_name(false)?;
    if let Some(statement) = partitions::parse_alter(parser, &name)? {
        return Ok(statement);
    }
    let actions = parser.parse_comma_separated(parse_actions)?.into_iter().flatten().collect();
    Ok(StatementKind::AlterTable(AlterTableStatement { name, if_exists, actions }))
}

fn parse_actions(parser: &mut Parser<'_>) -> Parsed<Vec<AlterAction>> {
    if parser.parse_keyword(Keyword::RENAME) {
        if parser.parse_keyword(Keyword::TO) {
            return Ok(vec![AlterAction::RenameTable { to: parser.parse_object_name(false)? }]);
        }
        let _ = parser.parse_keyword(Keyword::COLUMN);
        let from = normalise(&parser.parse_identifier()?);
        parser.expect_keyword(Keyword::TO)?;
        let to = normalise(&parser.parse_identifier()?);
        return Ok(vec![AlterAction::RenameColumn { from, to }]);
    }
    if parser.parse_keyword(Keyword::ADD) {
        return match constraint(parser) {
            Some(clause) => {
                skip_rest(parser);
                Ok(vec![AlterAction::Unsupported(clause)])
            }
            None => parse_add(parser),
        };
    }
    if parser.parse_keyword(Keyword::CREATE) {
        return Ok(vec![parse_create_tag(parser)?]);
    }
    if parser.parse_keyword(Keyword::DROP) {
        if is_tag(parser) {
            let _ = parser.next_token();
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let name = normalise(&parser.parse_identifier()?);
            return Ok(vec![AlterAction::DropTag { name, if_exists }]);
        }
        let _ = parser.parse_keyword(Keyword::COLUMN);
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name = normalise(&parser.parse_identifier()?);
        return Ok(vec![AlterAction::DropColumn { name, if_exists }]);
    }
    if parser.parse_keyword(Keyword::ALTER) {
        let _ = parser.parse_keyword(Keyword::COLUMN);
        return Ok(vec![parse_alter_column(parser)?]);
    }
    if parser.parse_keyword(Keyword::SET) {
        let _ = parser.parse_keyword(Keyword::TBLPROPERTIES) || parse_word(parser, "PROPERTIES");
        return Ok(vec![AlterAction::SetProperties(literal::parse_options(parser)?)]);
    }
    if parse_word(parser, "OWNER") {
        parser.expect_keyword(Keyword::TO)?;
        return Ok(vec![AlterAction::SetOwner(normalise(&parser.parse_identifier()?))]);
    }
    if parser.parse_keyword(Keyword::ROLLBACK) {
        return Ok(vec![AlterAction::RollBack(parse_roll_back(parser)?)]);
    }
    if parser.parse_keywords(&[Keyword::EXECUTE, Keyword::ROLLBACK]) {
        parser.expect_token(&Token::LParen)?;
        // In Hive, a text is a time.
        let target = match parser.peek_token().token {
            Token::SingleQuotedString(_) => RollBackTarget::Time(parser.parse_literal_string()?),
            _ => RollBackTarget::Snapshot(parse_snapshot_id(parser)?),
        };
        parser.expect_token(&Token::RParen)?;
        return Ok(vec![AlterAction::RollBack(target)]);
    }
    if parse_word(parser, "UNSET") {
        let _ = parser.parse_keyword(Keyword::TBLPROPERTIES) || parse_word(parser, "PROPERTIES");
        parser.expect_token(&Token::LParen)?;
        let names = parser.parse_comma_separated(literal::parse_option_name)?;
        parser.expect_token(&Token::RParen)?;
        return Ok(vec![AlterAction::UnsetProperties(names)]);
    }
    if parse_word(parser, "WRITE") {
        if !parse_word(parser, "ORDERED") {
            let found = parser.peek_token();
            return parser.expected("ORDERED BY after WRITE", found);
        }
        parser.expect_keyword(Keyword::BY)?;
        return Ok(vec![AlterAction::SetSortOrder(parse_sort_terms(parser)?)]);
    }
    let found = parser.peek_token();
    parser.expected(
        "RENAME, ADD, DROP, ALTER COLUMN, SET, UNSET, OWNER TO, WRITE ORDERED BY, ROLLBACK TO, CREATE TAG or DROP TAG",
        found,
    )
}

/// Whether `TAG name` follows, and not a column that is called so.
fn is_tag(parser: &Parser<'_>) -> bool {
    let is_word = |token: &Token| matches!(token, Token::Word(_));
    let [tag, name] = parser.peek_tokens();
    let is_called_tag = matches!(&tag, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("tag"));
    is_called_tag && is_word(&name)
}

fn parse_create_tag(parser: &mut Parser<'_>) -> Parsed<AlterAction> {
    if !parse_word(parser, "TAG") {
        let found = parser.peek_token();
        return parser.expected("TAG after CREATE", found);
    }
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = normalise(&parser.parse_identifier()?);
    let snapshot_id = match parser.parse_keywords(&[Keyword::AS, Keyword::OF, Keyword::VERSION]) {
        true => Some(parse_snapshot_id(parser)?),
        false => None,
    };
    Ok(AlterAction::CreateTag { name, if_not_exists, snapshot_id })
}

fn parse_roll_back(parser: &mut Parser<'_>) -> Parsed<RollBackTarget> {
    parser.expect_keyword(Keyword::TO)?;
    if parser.parse_keyword(Keyword::TIMESTAMP) {
        return Ok(RollBackTarget::Time(parser.parse_literal_string()?));
    }
    let found = parser.peek_token();
    if !parser.parse_keyword(Keyword::VERSION) {
        return parser
            .expected("VERSION id, VERSION 'tag' or TIMESTAMP 'time' after ROLLBACK TO", found);
    }
    let found = parser.peek_token();
    match found.token {
        Token::Number(..) => Ok(RollBackTarget::Snapshot(parse_snapshot_id(parser)?)),
        Token::SingleQuotedString(_) => Ok(RollBackTarget::Named(parser.parse_literal_string()?)),
        _ => parser.expected("the id of a snapshot, or 'tag', after ROLLBACK TO VERSION", found),
    }
}

fn parse_snapshot_id(parser: &mut Parser<'_>) -> Parsed<i64> {
    parser.parse_literal_uint().map(|id| i64::try_from(id).unwrap_or(i64::MAX))
}

fn parse_alter_column(parser: &mut Parser<'_>) -> Parsed<AlterAction> {
    let name = normalise(&parser.parse_identifier()?);
    if parser.parse_keyword(Keyword::DROP) {
        return match parser.expect_one_of_keywords(&[Keyword::NOT, Keyword::DEFAULT])? {
            Keyword::DEFAULT => Ok(AlterAction::SetDefault { name, default: None }),
            _ => parser.expect_keyword(Keyword::NULL).map(|_| AlterAction::DropNotNull { name }),
        };
    }
    if parser.parse_keywords(&[Keyword::SET, Keyword::NOT, Keyword::NULL]) {
        return Ok(AlterAction::Unsupported("SET NOT NULL"));
    }
    if parser.parse_keywords(&[Keyword::SET, Keyword::DEFAULT]) {
        let default = Some(defaults::parse(parser)?);
        return Ok(AlterAction::SetDefault { name, default });
    }
    let _ = parser.parse_keywords(&[Keyword::SET, Keyword::DATA]);
    parser.expect_keyword(Keyword::TYPE)?;
    let (data_type, declared) = parse_declared_type(parser)?;
    Ok(AlterAction::ChangeType { name, data_type, declared })
}

fn parse_add(parser: &mut Parser<'_>) -> Parsed<Vec<AlterAction>> {
    let plural = parse_word(parser, "COLUMNS");
    let _ = !plural && parser.parse_keyword(Keyword::COLUMN);
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let fields = if parser.consume_token(&Token::LParen) {
        let fields = parser.parse_comma_separated(parse_column)?;
        parser.expect_token(&Token::RParen)?;
        fields
    } else {
        vec![parse_column(parser)?]
    };
    let add = |field| AlterAction::AddColumn { field, if_not_exists };
    Ok(fields.into_iter().map(add).collect())
}
