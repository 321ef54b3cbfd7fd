//! Statements about resource plans, which Stoa spells as Hive does. Their grammar is `stoa-sql`'s; here they only get
//! Stoa's quotes.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use stoa_error::Result;

use crate::cursor::{Cursor, is_word, literal, quoted};
use crate::lexer::{DEFAULT_DATABASE, DEFAULT_NAMESPACE};

/// First words of these statements.
const BEGINNINGS: &[&[&str]] = &[
    &["create", "resource", "plan"],
    &["alter", "resource", "plan"],
    &["drop", "resource", "plan"],
    &["replace", "resource", "plan"],
    &["replace", "active", "resource", "plan"],
    &["show", "resource"],
    &["enable", "workload"],
    &["disable", "workload"],
    &["create", "pool"],
    &["alter", "pool"],
    &["drop", "pool"],
    &["create", "trigger"],
    &["alter", "trigger"],
    &["drop", "trigger"],
];

/// Whether a statement is one of these.
pub(crate) fn is_in(tokens: &[TokenWithSpan]) -> bool {
    let cursor = Cursor::new(tokens);
    let is_mapping = || {
        ["create", "alter", "drop"].iter().any(|verb| is_word(cursor.peek(), verb))
            && ["user", "group", "application"].iter().any(|kind| is_word(cursor.nth(1), kind))
            && is_word(cursor.nth(2), "mapping")
    };
    BEGINNINGS.iter().any(|words| cursor.looking_at(words)) || is_mapping()
}

/// The statement with Stoa's quotes; `is_default` tells of a token whether it is written `default`, which is Hive's name
/// of a database elsewhere, and here one of a pool.
///
/// # Errors
/// 42601 for signs that none of them has.
pub(crate) fn translate(
    tokens: &[TokenWithSpan],
    is_default: impl Fn(&TokenWithSpan) -> bool,
) -> Result<String> {
    let mut all = String::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_counter = at > 0 && is_word(&tokens[at - 1].token, "when");
        let written = match &token.token {
            Token::Word(word) if word.value == DEFAULT_NAMESPACE && is_default(token) => {
                quoted(DEFAULT_DATABASE)
            }
            Token::Word(word) if word.quote_style.is_some() => quoted(&word.value),
            // Hive tells some of its counters by their case.
            Token::Word(word) if is_counter => word.value.to_uppercase(),
            Token::Word(word) => word.value.clone(),
            Token::SingleQuotedString(text) => literal(text),
            Token::Number(number, false) => number.clone(),
            Token::Period | Token::Comma | Token::Eq | Token::Gt => token.token.to_string(),
            _ => return Err(Cursor { tokens, at }.wrong("a name, a number or a text")),
        };
        let is_tight = matches!(token.token, Token::Period | Token::Comma) || all.ends_with('.');
        if !all.is_empty() && !is_tight {
            all.push(' ');
        }
        all.push_str(&written);
    }
    Ok(all)
}

/// `sys.wm_…`, Hive's tables about resource plans, are those of `system`.
pub(crate) fn with_system_tables(tokens: &mut [TokenWithSpan]) {
    for at in 0..tokens.len().saturating_sub(2) {
        let is_table =
            matches!(&tokens[at + 2].token, Token::Word(word) if word.value.starts_with("wm_"));
        let follows_name = at > 0 && tokens[at - 1].token == Token::Period;
        if is_table
            && tokens[at + 1].token == Token::Period
            && !follows_name
            && let Token::Word(word) = &mut tokens[at].token
            && word.value == "sys"
        {
            "system".clone_into(&mut word.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, translate};

    fn check(hive: &str, stoa: &str) {
        assert_eq!(translate(hive, Options::default()).unwrap(), stoa, "{hive}");
    }

    #[test]
    fn statements_get_quotes_of_stoa() {
        check(
            "CREATE POOL `table`.default.c1 WITH ALLOC_FRACTION=0.5, SCHEDULING_POLICY=\"fair\"",
            "create pool \"table\".\"default\".c1 with alloc_fraction = 0.5, scheduling_policy = 'fair'",
        );
        check(
            "create trigger p.t when elapsed_time > '30sec' do move to a.b;",
            "create trigger p.t when ELAPSED_TIME > '30sec' do move to a.b",
        );
        check(
            "create user mapping \"it's\" in p unmanaged",
            "create user mapping 'it''s' in p unmanaged",
        );
        check("enable workload management", "enable workload management");
        check("select * from sys.wm_pools", "SELECT * FROM system.wm_pools");
        for wrong in ["create pool p.a with (x)", "create trigger p.t when a >= 5 do kill"] {
            assert_eq!(translate(wrong, Options::default()).unwrap_err().sqlstate(), "42601");
        }
    }
}
