//! Whether a statement calls functions that must know the tables that there are.

use stoa_sql::lexer::{Lexer, Token, TokenKind};

use crate::{definitions, rights};

/// Whether a statement calls one of the functions: their name, in quotes or not, before `(`. What
/// literals and comments say does not count.
pub fn asks_about_tables(text: &str) -> bool {
    let mut tokens = Lexer::new(text).filter(Token::is_significant).peekable();
    while let Some(token) = tokens.next() {
        // A cast to it is a call, too.
        let is_cast = token.kind == TokenKind::Word && token.text.eq_ignore_ascii_case("regclass");
        let mut is_called = || tokens.peek().is_some_and(|next| next.is_sign('('));
        if is_cast || names_function(&token) && is_called() {
            return true;
        }
    }
    false
}

fn names_function(token: &Token<'_>) -> bool {
    let name = match token.kind {
        TokenKind::Word => token.text,
        TokenKind::Name => token.text.trim_matches(['"', '`']),
        _ => return false,
    };
    rights::ALL.iter().any(|object| object.function().eq_ignore_ascii_case(name))
        || definitions::ALL.iter().any(|about| about.function().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_functions_are_found() {
        for text in [
            "SELECT HAS_TABLE_PRIVILEGE('t', 'select')",
            "select 1 where pg_has_role  /* or not */ ('ann', 'usage')",
            "SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') FROM pg_namespace n",
            "SELECT \"has_column_privilege\"('t', 'a', 'select')",
            "INSERT INTO t SELECT has_any_column_privilege('t', 'select')",
        ] {
            assert!(asks_about_tables(text), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_call_is_none() {
        for text in [
            "SELECT privileges FROM t",
            "SELECT 'has_table_privilege(1)', $$pg_has_role(1)$$ FROM t",
            "SELECT 1 -- has_table_privilege('t', 'select')",
            "SELECT /* pg_has_role('ann', 'usage') */ 1",
            "SELECT has_table_privilege FROM t",
            "SELECT my_has_table_privilege(1), is_privilege(a) FROM t",
            "SELECT \"a has_table_privilege\" FROM t",
            "",
        ] {
            assert!(!asks_about_tables(text), "{text}");
        }
    }

    #[test]
    fn every_function_is_found() {
        for object in rights::ALL {
            assert!(asks_about_tables(&format!("SELECT {}('a', 'b')", object.function())));
        }
        for about in definitions::ALL {
            assert!(asks_about_tables(&format!("SELECT {}(1)", about.function())));
        }
    }
}
