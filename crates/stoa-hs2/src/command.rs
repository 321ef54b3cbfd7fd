//! Statements that Hive's clients send by themselves, recognised by their text: `USE`, `SET`, `SHOW DATABASES`,
//! `SHOW TABLES`, `DESCRIBE`, and the question for the current database.
//!
//! What is not written exactly so is the engine's to read.

/// A statement that is answered here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `USE db`.
    Use(String),
    /// `SET` or `SET -v`.
    SetAll,
    /// `SET name`.
    Get(String),
    /// `SET name=value`.
    Set(String, String),
    /// `SHOW DATABASES [LIKE 'pattern']`.
    Databases(Option<String>),
    /// `SHOW TABLES|VIEWS [IN db] [[LIKE] 'pattern']`.
    Tables { database: Option<String>, like: Option<String>, only_views: bool },
    /// `DESCRIBE [EXTENDED|FORMATTED] [db.]table`.
    Describe { database: Option<String>, table: String, is_detailed: bool },
    /// `SHOW PARTITIONS [db.]table`.
    Partitions { database: Option<String>, table: String },
    /// `SHOW CREATE TABLE [db.]table`.
    CreateTable { database: Option<String>, table: String },
    /// `SELECT current_database()`.
    CurrentDatabase,
}

impl Command {
    /// The command that the text is; `None` where it is none.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = without_comments(text);
        let first = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (keyword, rest) = text.split_at(first);
        match keyword.to_ascii_lowercase().as_str() {
            "set" => set(rest),
            "use" => match tokens(rest)?.as_slice() {
                [database] if database.is_name() => Some(Self::Use(database.text.clone())),
                _ => None,
            },
            "show" => show(&tokens(rest)?),
            "desc" | "describe" => describe(&tokens(rest)?),
            "select" if is_current_database(rest) => Some(Self::CurrentDatabase),
            _ => None,
        }
    }
}

/// The text behind blanks and comments.
fn without_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if text.starts_with("--") {
            text = text.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(comment) = text.strip_prefix("/*") {
            text = comment.split_once("*/").map_or("", |(_, rest)| rest);
        } else {
            return text.trim_end();
        }
    }
}

fn is_current_database(rest: &str) -> bool {
    let rest: String = rest.chars().filter(|char| !char.is_whitespace()).collect();
    rest.eq_ignore_ascii_case("current_database()")
}

fn set(rest: &str) -> Option<Command> {
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let rest = rest.trim();
    if rest.is_empty() || rest.eq_ignore_ascii_case("-v") {
        return Some(Command::SetAll);
    }
    let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    match rest.split_once('=') {
        Some((name, value)) if is_name(name.trim()) => {
            Some(Command::Set(name.trim().to_owned(), value.trim().to_owned()))
        }
        None if is_name(rest) => Some(Command::Get(rest.to_owned())),
        _ => None,
    }
}

fn show(tokens: &[Token]) -> Option<Command> {
    let (what, rest) = tokens.split_first()?;
    if what.is("databases") || what.is("schemas") {
        return like(rest).map(Command::Databases);
    }
    if what.is("partitions") {
        return table(rest).map(|(database, table)| Command::Partitions { database, table });
    }
    if what.is("create")
        && let [word, rest @ ..] = rest
        && word.is("table")
    {
        return table(rest).map(|(database, table)| Command::CreateTable { database, table });
    }
    let only_views = what.is("views");
    if !what.is("tables") && !only_views {
        return None;
    }
    let (database, rest) = match rest {
        [word, database, rest @ ..] if (word.is("in") || word.is("from")) && database.is_name() => {
            (Some(database.text.clone()), rest)
        }
        rest => (None, rest),
    };
    like(rest).map(|like| Command::Tables { database, like, only_views })
}

/// `[LIKE] 'pattern'`, or nothing.
fn like(tokens: &[Token]) -> Option<Option<String>> {
    match tokens {
        [] => Some(None),
        [pattern] if pattern.is_literal() => Some(Some(pattern.text.clone())),
        [word, pattern] if word.is("like") && pattern.is_literal() => {
            Some(Some(pattern.text.clone()))
        }
        _ => None,
    }
}

fn describe(tokens: &[Token]) -> Option<Command> {
    let (is_detailed, tokens) = match tokens {
        // A table may have such a name.
        [word, rest @ ..] if !rest.is_empty() && (word.is("extended") || word.is("formatted")) => {
            (true, rest)
        }
        tokens => (false, tokens),
    };
    table(tokens).map(|(database, table)| Command::Describe { database, table, is_detailed })
}

/// `[db.]table`
fn table(tokens: &[Token]) -> Option<(Option<String>, String)> {
    let (database, table) = match tokens {
        [table] => (None, table),
        [database, dot, table] if dot.kind == TokenKind::Dot => (Some(database), table),
        _ => return None,
    };
    if !table.is_name() || database.is_some_and(|name| !name.is_name()) {
        return None;
    }
    Some((database.map(|name| name.text.clone()), table.text.clone()))
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    kind: TokenKind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    /// A keyword or a name, in lower case.
    Word,
    /// A name as it was written.
    Quoted,
    Literal,
    Dot,
}

impl Token {
    fn is(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text == keyword
    }

    fn is_name(&self) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Quoted)
    }

    fn is_literal(&self) -> bool {
        self.kind == TokenKind::Literal
    }
}

/// The tokens of a command; `None` where there is anything else than names, texts and dots.
fn tokens(mut text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return Some(tokens) };
        let (kind, token, rest) = match first {
            '.' => (TokenKind::Dot, ".".to_owned(), &text[1..]),
            '`' | '"' | '\'' => {
                let (token, rest) = text[1..].split_once(first)?;
                let kind = if first == '\'' { TokenKind::Literal } else { TokenKind::Quoted };
                // Quotes within quotes are the engine's.
                if rest.starts_with(first) || token.contains('\\') {
                    return None;
                }
                (kind, token.to_owned(), rest)
            }
            letter if letter.is_alphanumeric() || letter == '_' => {
                let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$');
                let length = text.find(|char| !is_part(char)).unwrap_or(text.len());
                (TokenKind::Word, text[..length].to_lowercase(), &text[length..])
            }
            _ => return None,
        };
        tokens.push(Token { kind, text: token });
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<Command>) {
        assert_eq!(Command::of(text), expected, "{text}");
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn what_clients_send_by_themselves_is_recognised() {
        check("USE `default`", Some(Command::Use("default".to_owned())));
        check("use Sales ", Some(Command::Use("sales".to_owned())));
        check("set", Some(Command::SetAll));
        check("SET -v", Some(Command::SetAll));
        check("set hive.a", Some(Command::Get("hive.a".to_owned())));
        let set = Command::Set("hiveconf:x".to_owned(), "a = b".to_owned());
        check("set hiveconf:x = a = b", Some(set));
        check("-- c\n SHOW DATABASES", Some(Command::Databases(None)));
        check("show schemas like 'a*'", Some(Command::Databases(some("a*"))));
        let tables =
            |database, like, only_views| Some(Command::Tables { database, like, only_views });
        check("SHOW TABLES", tables(None, None, false));
        check("SHOW TABLES IN `x y` 'a|b'", tables(some("x y"), some("a|b"), false));
        check("SHOW VIEWS FROM x", tables(some("x"), None, true));
        let describe = |database, table: &str, is_detailed| {
            Some(Command::Describe { database, table: table.to_owned(), is_detailed })
        };
        check("DESCRIBE default.t", describe(some("default"), "t", false));
        check("desc formatted `T`", describe(None, "T", true));
        check("DESCRIBE extended", describe(None, "extended", false));
        let part = Command::Partitions { database: some("d"), table: "t".to_owned() };
        check("SHOW PARTITIONS d.t", Some(part));
        let made = Command::CreateTable { database: None, table: "t".to_owned() };
        check("show create table t", Some(made));
        check("select current_database ( )", Some(Command::CurrentDatabase));
    }

    #[test]
    fn all_else_is_the_engines() {
        for text in [
            "",
            "SELECT 1",
            "SET TIME ZONE 'UTC'",
            "SET ROLE x",
            "set x to y",
            "settle",
            "SHOW CREATE VIEW t",
            "SHOW TABLES; DROP TABLE t",
            "USE a.b",
            "DESCRIBE t column",
            "useless",
            "SHOW search_path",
            "DESCRIBE `a``b`",
            "/* SHOW TABLES",
            "select current_database() from t",
        ] {
            check(text, None);
        }
    }
}
