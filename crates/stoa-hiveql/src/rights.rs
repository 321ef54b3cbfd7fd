//! `GRANT`, `REVOKE`, `SET ROLE`, and the lists of roles and grants with the names that Hive gives their columns.
//!
//! Users of Hive are roles that may log in; Hive's roles are those that may not. `admin` is what superusers have, and
//! `public` what everybody has. All roles of a user hold at once.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use stoa_error::{Error, Result};

use crate::cursor::{Cursor, literal, quoted};
use crate::lexer::{DEFAULT_DATABASE, DEFAULT_NAMESPACE};

/// The role of superusers.
const ADMIN: &str = "admin";
/// The role of everybody.
const PUBLIC: &str = "public";
/// What Hive grants and Stoa knows.
const PRIVILEGES: [&str; 4] = ["select", "insert", "update", "delete"];

/// `GRANT …` and `REVOKE …`.
///
/// # Errors
/// 42601; 0A000 for options and kinds of objects that Stoa has not.
pub(crate) fn grant(tokens: &[TokenWithSpan]) -> Result<String> {
    let mut cursor = Cursor::new(tokens);
    let revokes = cursor.take(&["revoke"]);
    if !revokes {
        cursor.expect(&["grant"])?;
    }
    let command = if revokes { "REVOKE" } else { "GRANT" };
    for option in ["grant", "admin"] {
        if cursor.looking_at(&[option, "option", "for"]) {
            return Err(no_options());
        }
    }
    let names_role = cursor.take(&["role"]);
    let terms =
        cursor.until(|cursor| ["on", "to", "from"].iter().any(|word| cursor.looking_at(&[word])));
    let toward = if revokes { "from" } else { "to" };
    if names_role || !cursor.looking_at(&["on"]) {
        return membership(&mut cursor, terms, revokes);
    }
    let privileges = privileges(terms)?;
    cursor.expect(&["on"])?;
    let object = object(&mut cursor)?;
    cursor.expect(&[toward])?;
    let grantees = principals(&mut cursor)?;
    if cursor.looking_at(&["with", "grant", "option"]) {
        return Err(no_options());
    }
    cursor.expect_end()?;
    let grantees = grantees.iter().map(|name| match name.as_str() {
        PUBLIC => "PUBLIC".to_owned(),
        name => quoted(name),
    });
    let grantees: Vec<String> = grantees.collect();
    Ok(format!(
        "{command} {privileges} ON {object} {} {}",
        toward.to_uppercase(),
        grantees.join(", ")
    ))
}

fn no_options() -> Error {
    Error::unsupported("GRANT OPTION and ADMIN OPTION are not supported")
        .with_hint("owners of tables and superusers grant rights, superusers grant roles: leave the option out")
}

/// `GRANT [ROLE] role, … TO principal, …`.
fn membership(cursor: &mut Cursor<'_>, terms: &[TokenWithSpan], revokes: bool) -> Result<String> {
    let roles = names(terms)?;
    cursor.expect(&[if revokes { "from" } else { "to" }])?;
    let members = principals(cursor)?;
    if cursor.looking_at(&["with", "admin", "option"]) {
        return Err(no_options());
    }
    cursor.expect_end()?;
    if roles == [ADMIN] {
        let [member] = members.as_slice() else {
            return Err(Error::unsupported(
                "several users of the role admin at once are not supported",
            )
            .with_hint("name one user in each statement"));
        };
        let may = if revokes { "NOSUPERUSER" } else { "SUPERUSER" };
        return Ok(format!("ALTER ROLE {} {may}", quoted(member)));
    }
    if let Some(name) = roles.iter().find(|name| [ADMIN, PUBLIC].contains(&name.as_str())) {
        return Err(Error::unsupported(format!(
            "granting the role {name} with others is not supported"
        ))
        .with_hint("everybody has public; grant admin by itself"));
    }
    let list =
        |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let (roles, members) = (list(&roles), list(&members));
    Ok(match revokes {
        false => format!("GRANT {roles} TO {members}"),
        true => format!("REVOKE {roles} FROM {members}"),
    })
}

fn names(tokens: &[TokenWithSpan]) -> Result<Vec<String>> {
    let mut cursor = Cursor::new(tokens);
    let mut all = vec![cursor.name()?];
    while cursor.take_token(&Token::Comma) {
        all.push(cursor.name()?);
    }
    cursor.expect_end()?;
    Ok(all)
}

fn privileges(tokens: &[TokenWithSpan]) -> Result<String> {
    let mut cursor = Cursor::new(tokens);
    let mut all = Vec::new();
    while all.is_empty() || cursor.take_token(&Token::Comma) {
        if cursor.take(&["all"]) {
            let _ = cursor.take(&["privileges"]);
            all.push("ALL".to_owned());
            continue;
        }
        let word = cursor.name()?;
        if !PRIVILEGES.contains(&word.as_str()) {
            return Err(Error::unsupported(format!(
                "the privilege {} is not supported",
                word.to_uppercase()
            ))
            .with_hint(
                "SELECT, INSERT, UPDATE, DELETE and ALL are; owners alter and drop tables",
            ));
        }
        let mut privilege = word.to_uppercase();
        if *cursor.peek() == Token::LParen {
            let columns = names(cursor.parenthesised()?)?;
            let columns: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
            privilege.push_str(&format!(" ({})", columns.join(", ")));
        }
        all.push(privilege);
    }
    cursor.expect_end()?;
    Ok(all.join(", "))
}

/// `[TABLE] name` or `DATABASE name`.
fn object(cursor: &mut Cursor<'_>) -> Result<String> {
    for kind in ["uri", "server", "function"] {
        if cursor.looking_at(&[kind])
            && matches!(cursor.nth(1), Token::Word(_) | Token::SingleQuotedString(_))
        {
            return Err(Error::unsupported(format!(
                "grants on a {} are not supported",
                kind.to_uppercase()
            ))
            .with_hint("grant on tables and databases"));
        }
    }
    if cursor.take(&["database"]) || cursor.take(&["schema"]) {
        return Ok(format!("SCHEMA {}", quoted(&namespace(cursor.name()?))));
    }
    let _ = cursor.take(&["table"]);
    let table = cursor.table()?;
    if cursor.looking_at(&["partition"]) {
        return Err(Error::unsupported("grants on a PARTITION are not supported")
            .with_hint("grant on the table"));
    }
    Ok(format!("TABLE {table}"))
}

fn namespace(name: String) -> String {
    if name == DEFAULT_DATABASE { DEFAULT_NAMESPACE.to_owned() } else { name }
}

/// `[USER | ROLE] name, …`.
fn principals(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let mut all = Vec::new();
    while all.is_empty() || cursor.take_token(&Token::Comma) {
        all.push(principal(cursor)?);
    }
    Ok(all)
}

fn principal(cursor: &mut Cursor<'_>) -> Result<String> {
    let is_followed = matches!(cursor.nth(1), Token::Word(_));
    if cursor.looking_at(&["group"]) && is_followed {
        return Err(Error::unsupported("groups are not supported")
            .with_hint("create a role, and grant it to the members of the group"));
    }
    if is_followed && (cursor.looking_at(&["user"]) || cursor.looking_at(&["role"])) {
        cursor.at += 1;
    }
    cursor.name()
}

/// `SET ROLE name | ALL | NONE`.
///
/// # Errors
/// 0A000 for NONE.
pub(crate) fn set_role(cursor: &mut Cursor<'_>) -> Result<String> {
    cursor.expect(&["set", "role"])?;
    if cursor.take(&["none"]) {
        return Err(Error::unsupported("SET ROLE NONE is not supported")
            .with_hint("all roles of a user hold at once; log in as a role that has fewer"));
    }
    let is_all = cursor.take(&["all"]);
    let name = if is_all { "ALL".to_owned() } else { quoted(&cursor.name()?) };
    cursor.expect_end()?;
    Ok(format!("SET ACTIVE ROLE {name}"))
}

/// `SHOW ROLES` and the other lists of roles and rights; `None` for other lists. The cursor is behind `SHOW`.
///
/// # Errors
/// 42601.
pub(crate) fn show(cursor: &mut Cursor<'_>) -> Result<Option<String>> {
    let text = match () {
        () if cursor.take(&["roles"]) => roles(),
        () if cursor.take(&["current", "roles"]) => current_roles(),
        () if cursor.take(&["role", "grant"]) => role_grants(cursor)?,
        () if cursor.take(&["principals"]) => principals_of(&cursor.name()?),
        () if cursor.take(&["grant"]) => grants(cursor)?,
        () => return Ok(None),
    };
    cursor.expect_end()?;
    Ok(Some(text))
}

fn roles() -> String {
    format!(
        "SELECT role FROM system.roles WHERE NOT login UNION SELECT '{ADMIN}' UNION SELECT '{PUBLIC}' ORDER BY role"
    )
}

fn current_roles() -> String {
    format!(
        "WITH RECURSIVE mine AS (SELECT unnest(string_to_array(member_of, ', ')) AS role FROM system.roles WHERE role = current_user UNION \
         SELECT unnest(string_to_array(r.member_of, ', ')) FROM system.roles r JOIN mine m ON r.role = m.role) \
         SELECT role FROM mine UNION SELECT '{PUBLIC}' UNION \
         SELECT '{ADMIN}' FROM system.roles WHERE role = current_user AND superuser ORDER BY role"
    )
}

/// Whether a role is one, or a user.
const KIND: &str = "CASE WHEN r.login THEN 'USER' ELSE 'ROLE' END";
/// Stoa keeps neither when something was granted nor by whom.
const UNKNOWN_TIME: &str = "CAST(NULL AS bigint) AS grant_time";
const UNKNOWN_GRANTOR: &str = "CAST(NULL AS text) AS grantor";

/// `SHOW ROLE GRANT USER|ROLE name`.
fn role_grants(cursor: &mut Cursor<'_>) -> Result<String> {
    let is_user = match () {
        () if cursor.take(&["user"]) => true,
        () if cursor.take(&["role"]) => false,
        () => return Err(cursor.wrong("USER or ROLE")),
    };
    let name = literal(&cursor.name()?);
    let public = if is_user { format!(" UNION SELECT '{PUBLIC}'") } else { String::new() };
    Ok(format!(
        "SELECT role, false AS grant_option, {UNKNOWN_TIME}, {UNKNOWN_GRANTOR} FROM (SELECT unnest(string_to_array(member_of, ', ')) AS role FROM \
         system.roles WHERE role = {name} UNION SELECT '{ADMIN}' FROM system.roles WHERE role = {name} AND superuser{public}) \
         AS roles ORDER BY role"
    ))
}

/// `SHOW PRINCIPALS role`.
fn principals_of(role: &str) -> String {
    let is_member = match role {
        ADMIN => "r.superuser".to_owned(),
        role => format!("{} = ANY (string_to_array(r.member_of, ', '))", literal(role)),
    };
    format!(
        "SELECT r.role AS principal_name, {KIND} AS principal_type, false AS grant_option, {UNKNOWN_GRANTOR}, \
         CAST(NULL AS text) AS grantor_type, {UNKNOWN_TIME} FROM system.roles r WHERE {is_member} ORDER BY r.role"
    )
}

/// `SHOW GRANT [USER|ROLE name] [ON [TABLE] name | ON DATABASE name | ON ALL]`.
fn grants(cursor: &mut Cursor<'_>) -> Result<String> {
    let mut conditions = Vec::new();
    if !cursor.is_end() && !cursor.looking_at(&["on"]) {
        let name = principal(cursor)?;
        conditions.push(match name.as_str() {
            PUBLIC => "g.grantee = 'PUBLIC'".to_owned(),
            name => format!("g.grantee = {}", literal(name)),
        });
    }
    if cursor.take(&["on"]) && !cursor.take(&["all"]) {
        conditions.push(granted_on(cursor)?);
    }
    let conditions = match conditions.as_slice() {
        [] => String::new(),
        all => format!("WHERE {} ", all.join(" AND ")),
    };
    // Owners have all rights, and grant them.
    let each: Vec<String> = PRIVILEGES
        .iter()
        .map(|word| word.to_uppercase())
        .map(|word| format!("('{word}', '{word}'), ('OWNER', '{word}')"))
        .collect();
    Ok(format!(
        "SELECT CASE WHEN g.namespace = '{DEFAULT_NAMESPACE}' THEN '{DEFAULT_DATABASE}' ELSE g.namespace END AS database, \
         coalesce(g.\"table\", '') AS \"table\", '' AS partition, coalesce(g.columns, '') AS \"column\", \
         CASE WHEN g.grantee = 'PUBLIC' THEN '{PUBLIC}' ELSE g.grantee END AS principal_name, {KIND} AS principal_type, \
         p.name AS privilege, g.privilege = 'OWNER' AS grant_option, {UNKNOWN_TIME}, {UNKNOWN_GRANTOR} \
         FROM system.grants g JOIN (VALUES {}) AS p (\"of\", name) ON p.\"of\" = g.privilege \
         LEFT JOIN system.roles r ON r.role = g.grantee {conditions}ORDER BY 1, 2, 5, 7, 4",
        each.join(", ")
    ))
}

fn granted_on(cursor: &mut Cursor<'_>) -> Result<String> {
    if cursor.take(&["database"]) || cursor.take(&["schema"]) {
        let name = literal(&namespace(cursor.name()?));
        return Ok(format!("g.namespace = {name} AND g.\"table\" IS NULL"));
    }
    let _ = cursor.take(&["table"]);
    let first = cursor.name()?;
    let (namespace, table) = match cursor.take_token(&Token::Period) {
        true => (literal(&namespace(first)), cursor.name()?),
        false => ("current_schema()".to_owned(), first),
    };
    if *cursor.peek() == Token::LParen || cursor.looking_at(&["partition"]) {
        return Err(Error::unsupported("SHOW GRANT on a column or partition is not supported")
            .with_hint("SHOW GRANT ON TABLE shows the columns of each grant"));
    }
    Ok(format!("g.namespace = {namespace} AND g.\"table\" = {}", literal(&table)))
}

#[cfg(test)]
mod tests {
    use crate::{Options, translate};

    fn check(hive: &str, stoa: &str) {
        assert_eq!(translate(hive, Options::default()).unwrap(), stoa, "{hive}");
    }

    #[test]
    fn users_and_roles_are_roles() {
        check("GRANT ROLE a TO USER b, ROLE c", r#"GRANT "a" TO "b", "c""#);
        check("revoke a from user `b`", r#"REVOKE "a" FROM "b""#);
        check("grant admin to user ann", r#"ALTER ROLE "ann" SUPERUSER"#);
        check("revoke role admin from user ann", r#"ALTER ROLE "ann" NOSUPERUSER"#);
        check(
            "grant select, INSERT on default.t to role public, user user",
            r#"GRANT SELECT, INSERT ON TABLE "public"."t" TO PUBLIC, "user""#,
        );
        check("grant all on database default to user a", r#"GRANT ALL ON SCHEMA "public" TO "a""#);
        check("grant select (a, b) on t to a", r#"GRANT SELECT ("a", "b") ON TABLE "t" TO "a""#);
        check("set role all", "SET ACTIVE ROLE ALL");
        check("set role admin", r#"SET ACTIVE ROLE "admin""#);
        for refused in [
            "grant select on t to user a with grant option",
            "grant r to user a with admin option",
            "revoke grant option for select on t from user a",
            "revoke admin option for r from user a",
            "grant select on t to group g",
            "grant lock on t to user a",
            "grant select on uri '/x' to user a",
            "grant admin, r to user a",
            "set role none",
        ] {
            let error = translate(refused, Options::default()).unwrap_err();
            assert_eq!(error.sqlstate(), "0A000", "{refused}");
            assert!(error.hint().is_some(), "{refused}");
        }
    }
}
