//! `CREATE`, `ALTER` and `DROP ROLE`, `GRANT` and `REVOKE`, as PostgreSQL spells them.

use datafusion_sql::sqlparser::ast::ObjectName;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;
use stoa_access::{Grantee, Privilege};

use crate::statement::StatementKind;
use crate::{Parsed, normalise, parse_word};

/// A statement about roles and what they may do.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are named as in the syntax above them")]
pub enum RoleStatement {
    /// `CREATE ROLE name options`
    Create { name: String, options: RoleOptions },
    /// `ALTER ROLE name options`
    Alter { name: String, options: RoleOptions },
    /// `DROP ROLE [IF EXISTS] names`
    Drop { names: Vec<String>, if_exists: bool },
    /// `GRANT privileges ON objects TO grantees`
    Grant(GrantStatement),
    /// `REVOKE privileges ON objects FROM grantees`
    Revoke(GrantStatement),
    /// `GRANT roles TO members`
    GrantRole { roles: Vec<String>, members: Vec<String> },
    /// `REVOKE roles FROM members`
    RevokeRole { roles: Vec<String>, members: Vec<String> },
    /// `SET ACTIVE ROLE role`, or `ALL`: Hive's `SET ROLE`. All roles of a user are always active.
    Activate(Option<String>),
}

/// What a role is to be; `None` leaves it as it is.
#[derive(Clone, Debug, Default)]
pub struct RoleOptions {
    /// `LOGIN`, `NOLOGIN`
    pub can_login: Option<bool>,
    /// `SUPERUSER`, `NOSUPERUSER`
    pub is_superuser: Option<bool>,
    /// `PASSWORD`
    pub password: Option<Password>,
}

/// A password in a statement.
#[derive(Clone)]
pub enum Password {
    /// `PASSWORD NULL`.
    None,
    /// As text, or as PostgreSQL's `SCRAM-SHA-256$…`.
    Text(String),
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password")
    }
}

/// Privileges on tables or namespaces.
#[derive(Clone, Debug)]
pub struct GrantStatement {
    /// What may be done.
    pub privileges: Vec<ColumnPrivilege>,
    /// With what.
    pub objects: GrantObjects,
    /// By whom.
    pub grantees: Vec<Grantee>,
}

/// A privilege, perhaps on some columns only.
#[derive(Clone, Debug)]
pub struct ColumnPrivilege {
    /// What may be done.
    pub privilege: Privilege,
    /// With which columns; `None` is all.
    pub columns: Option<Vec<String>>,
}

/// What a privilege is about.
#[derive(Clone, Debug)]
pub enum GrantObjects {
    /// `ON [TABLE] names`
    Tables(Vec<ObjectName>),
    /// `ON SCHEMA names`
    Namespaces(Vec<ObjectName>),
}

impl RoleStatement {
    /// PostgreSQL's command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::Create { .. } => "CREATE ROLE",
            Self::Alter { .. } => "ALTER ROLE",
            Self::Drop { .. } => "DROP ROLE",
            Self::Grant(_) => "GRANT",
            Self::Revoke(_) => "REVOKE",
            Self::GrantRole { .. } => "GRANT ROLE",
            Self::RevokeRole { .. } => "REVOKE ROLE",
            Self::Activate(_) => "SET",
        }
    }

    /// The statement as others may see it.
    pub(super) fn text_without_password(&self, text: &str) -> String {
        match self {
            Self::Create { name, options } | Self::Alter { name, options }
                if options.password.is_some() =>
            {
                format!("{} \"{name}\" … PASSWORD …", self.tag())
            }
            _ => text.to_owned(),
        }
    }
}

/// Takes `ROLE` or `USER`; whether it is `USER`, which may log in unless something else is said.
pub(super) fn parse_role_word(parser: &mut Parser<'_>) -> Option<bool> {
    parser.parse_one_of_keywords(&[Keyword::ROLE, Keyword::USER]).map(|word| word == Keyword::USER)
}

/// Parses `ACTIVE ROLE name | ALL` behind `SET`; `None` where something else follows.
pub(super) fn parse_activate(parser: &mut Parser<'_>) -> Parsed<Option<StatementKind>> {
    let [active, role] = parser.peek_tokens();
    let is = |token: &Token, word: &str| matches!(token, Token::Word(found) if found.value.eq_ignore_ascii_case(word));
    if !(is(&active, "active") && is(&role, "role")) {
        return Ok(None);
    }
    parser.next_token();
    parser.next_token();
    let role = match parser.parse_keyword(Keyword::ALL) {
        true => None,
        false => Some(normalise(&parser.parse_identifier()?)),
    };
    Ok(Some(StatementKind::Role(RoleStatement::Activate(role))))
}

pub(super) fn parse_create(parser: &mut Parser<'_>, is_user: bool) -> Parsed<StatementKind> {
    let name = normalise(&parser.parse_identifier()?);
    let options = parse_options(parser)?;
    let options = RoleOptions { can_login: options.can_login.or(Some(is_user)), ..options };
    Ok(StatementKind::Role(RoleStatement::Create { name, options }))
}

pub(super) fn parse_alter(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    let name = normalise(&parser.parse_identifier()?);
    let options = parse_options(parser)?;
    Ok(StatementKind::Role(RoleStatement::Alter { name, options }))
}

pub(super) fn parse_drop(parser: &mut Parser<'_>) -> Parsed<StatementKind> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = parse_names(parser)?;
    Ok(StatementKind::Role(RoleStatement::Drop { names, if_exists }))
}

fn parse_options(parser: &mut Parser<'_>) -> Parsed<RoleOptions> {
    let _ = parser.parse_keyword(Keyword::WITH);
    let mut options = RoleOptions::default();
    loop {
        if parse_word(parser, "LOGIN") {
            options.can_login = Some(true);
        } else if parse_word(parser, "NOLOGIN") {
            options.can_login = Some(false);
        } else if parse_word(parser, "SUPERUSER") {
            options.is_superuser = Some(true);
        } else if parse_word(parser, "NOSUPERUSER") {
            options.is_superuser = Some(false);
        } else if parse_word(parser, "ENCRYPTED") || parse_word(parser, "INHERIT") {
            // Passwords are never kept as they are; members always have what their roles have.
        } else if parse_word(parser, "PASSWORD") {
            options.password = Some(match parser.parse_keyword(Keyword::NULL) {
                true => Password::None,
                false => Password::Text(parser.parse_literal_string()?),
            });
        } else {
            let found = parser.peek_token();
            return match found.token {
                Token::EOF | Token::SemiColon => Ok(options),
                _ => parser.expected("LOGIN, NOLOGIN, SUPERUSER, NOSUPERUSER or PASSWORD", found),
            };
        }
    }
}

/// Parses what follows `GRANT` or `REVOKE`.
pub(super) fn parse_grant(parser: &mut Parser<'_>, revokes: bool) -> Parsed<StatementKind> {
    let toward = if revokes { Keyword::FROM } else { Keyword::TO };
    let terms = parser.parse_comma_separated(parse_term)?;
    if !parser.parse_keyword(Keyword::ON) {
        let mut roles = Vec::with_capacity(terms.len());
        for term in terms {
            match term {
                Term { word, columns: None } => roles.push(word),
                _ => {
                    let found = parser.peek_token();
                    return parser.expected("ON after privileges on columns", found);
                }
            }
        }
        parser.expect_keyword(toward)?;
        let members = parse_names(parser)?;
        return Ok(StatementKind::Role(match revokes {
            false => RoleStatement::GrantRole { roles, members },
            true => RoleStatement::RevokeRole { roles, members },
        }));
    }
    let privileges = privileges_of(parser, terms)?;
    let objects = parse_objects(parser)?;
    parser.expect_keyword(toward)?;
    let grantees = parser.parse_comma_separated(parse_grantee)?;
    let statement = GrantStatement { privileges, objects, grantees };
    Ok(StatementKind::Role(match revokes {
        false => RoleStatement::Grant(statement),
        true => RoleStatement::Revoke(statement),
    }))
}

/// A privilege, or a role.
struct Term {
    word: String,
    columns: Option<Vec<String>>,
}

fn parse_term(parser: &mut Parser<'_>) -> Parsed<Term> {
    let word = match parser.parse_keyword(Keyword::ALL) {
        true => {
            let _ = parse_word(parser, "PRIVILEGES");
            "all".to_owned()
        }
        false => normalise(&parser.parse_identifier()?),
    };
    let columns = match parser.consume_token(&Token::LParen) {
        true => {
            let columns = parser.parse_comma_separated(Parser::parse_identifier)?;
            parser.expect_token(&Token::RParen)?;
            Some(columns.iter().map(normalise).collect())
        }
        false => None,
    };
    Ok(Term { word, columns })
}

fn privileges_of(parser: &mut Parser<'_>, terms: Vec<Term>) -> Parsed<Vec<ColumnPrivilege>> {
    let mut privileges = Vec::with_capacity(terms.len());
    for Term { word, columns } in terms {
        if word == "all" {
            let all = Privilege::ALL.into_iter();
            privileges.extend(all.map(|privilege| ColumnPrivilege { privilege, columns: None }));
            continue;
        }
        match Privilege::parse(&word) {
            Some(privilege) => privileges.push(ColumnPrivilege { privilege, columns }),
            None => {
                let found = parser.peek_token();
                let expected = format!(
                    "SELECT, INSERT, UPDATE, DELETE or ALL instead of the privilege {word}"
                );
                return parser.expected(&expected, found);
            }
        }
    }
    Ok(privileges)
}

fn parse_objects(parser: &mut Parser<'_>) -> Parsed<GrantObjects> {
    let names = |parser: &mut Parser<'_>| {
        parser.parse_comma_separated(|parser| parser.parse_object_name(false))
    };
    let in_schema = [Keyword::ALL, Keyword::TABLES, Keyword::IN, Keyword::SCHEMA];
    if parser.parse_keywords(&in_schema) || parser.parse_keyword(Keyword::SCHEMA) {
        return names(parser).map(GrantObjects::Namespaces);
    }
    let _ = parser.parse_keyword(Keyword::TABLE);
    names(parser).map(GrantObjects::Tables)
}

fn parse_grantee(parser: &mut Parser<'_>) -> Parsed<Grantee> {
    let name = parser.parse_identifier()?;
    Ok(match name.quote_style.is_none() && name.value.eq_ignore_ascii_case("public") {
        true => Grantee::Public,
        false => Grantee::Role(normalise(&name)),
    })
}

fn parse_names(parser: &mut Parser<'_>) -> Parsed<Vec<String>> {
    let names = parser.parse_comma_separated(Parser::parse_identifier)?;
    Ok(names.iter().map(normalise).collect())
}
