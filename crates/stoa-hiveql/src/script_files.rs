//! `ADD FILE`, `DELETE FILE`, `LIST FILES`: files that scripts find where they run.
//!
//! Hive reads the rest of such a statement as paths, not as SQL: they need no quotes.

use stoa_error::{Error, Result};

use crate::cursor::literal;

/// The statement, if it is one of these.
pub(crate) fn statement(text: &str) -> Option<Result<String>> {
    let text = text.trim().trim_end_matches(';');
    let mut words = text.split_whitespace();
    let verb = words.next()?.to_ascii_uppercase();
    let is_file = |word: &str| ["file", "files"].iter().any(|of| word.eq_ignore_ascii_case(of));
    if !["ADD", "DELETE", "LIST"].contains(&verb.as_str()) || !words.next().is_some_and(is_file) {
        return None;
    }
    let paths: Vec<String> = words.map(|path| literal(plain(path))).collect();
    Some(match (verb.as_str(), paths.as_slice()) {
        ("LIST", []) => Ok("LIST FILES".to_owned()),
        ("LIST", _) => Err(Error::unsupported("LIST FILES with paths is not supported")
            .with_hint("LIST FILES lists all of them")),
        ("ADD", []) => Err(Error::invalid("ADD FILE needs the path of a file")
            .with_sqlstate("42601")
            .with_hint("ADD FILE /srv/scripts/count.py")),
        (_, []) => Ok(format!("{verb} FILES")),
        (_, paths) => Ok(format!("{verb} FILES {}", paths.join(", "))),
    })
}

/// A path without its quotes, and without `file://`.
fn plain(path: &str) -> &str {
    let quotes = ['\'', '"'];
    let path = quotes
        .iter()
        .find_map(|quote| path.strip_prefix(*quote).and_then(|path| path.strip_suffix(*quote)))
        .unwrap_or(path);
    path.strip_prefix("file://").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_need_no_quotes() {
        let check = |text: &str, expected: &str| {
            assert_eq!(statement(text).unwrap().unwrap(), expected, "{text}");
        };
        check("ADD FILE /srv/a.py", "ADD FILES '/srv/a.py'");
        check("add files '/srv/a.py' \"/b\" ;", "ADD FILES '/srv/a.py', '/b'");
        check("ADD FILE file:///srv/it's.py", "ADD FILES '/srv/it''s.py'");
        check("delete file a.py", "DELETE FILES 'a.py'");
        check("DELETE FILES", "DELETE FILES");
        check("list files", "LIST FILES");
        assert_eq!(statement("ADD FILE").unwrap().unwrap_err().sqlstate(), "42601");
        assert_eq!(statement("LIST FILE a").unwrap().unwrap_err().sqlstate(), "0A000");
        for other in ["", "ADD JAR x", "DELETE FROM files", "LIST JARS", "SELECT 1"] {
            assert!(statement(other).is_none(), "{other}");
        }
    }
}
