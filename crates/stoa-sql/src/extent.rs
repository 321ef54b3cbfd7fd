//! How large and how deep a text is, before anything is made of it.
//!
//! In: a text of statements. Out: an [`Extent`], or the error with which it is refused. What the parser
//! makes of a text is a tree, and whoever walks over it, be it only to drop it, goes as deep as it is.
//! Here one pass over the bytes bounds that depth from above: brackets that are open, and operators that
//! follow each other without a comma between them. The threads that parse have stacks for these
//! bounds (`stoa_env::executors`).
//!
//! **Invariant:** no recursion, memory for open brackets only, time linear in the text.
//!
//! Not here: the exact depth, which is looked at in the parsed statement (`chains`); steps of the
//! parser (`bounded`).

use stoa_error::{Error, Result};

use crate::lexer::{Lexer, Token, TokenKind};

/// Bytes of a text.
const BYTES_MAX: usize = 16 << 20;
/// Words, numbers, texts and signs of a text.
const TOKENS_MAX: usize = 2_000_000;
/// Brackets that are open at the same time.
const NESTING_MAX: usize = 500;
/// `AND`, `OR`, `+`, `-` of one expression, which are not left as deep as they are parsed.
const LINKS_MAX: usize = 131_072;
/// Other operators of one expression.
const OPERATORS_MAX: usize = 32_768;
/// Subscripts of one value, dimensions of one type, types within types.
const SUBSCRIPTS_MAX: usize = 64;
/// Queries of one statement, those within others and those of a UNION counted.
const QUERIES_MAX: usize = 5_000;
/// Tables that are joined in one statement.
const JOINS_MAX: usize = 500;
/// EXPLAINs of one statement.
const EXPLAINS_MAX: usize = 100;

/// Up to these numbers a text is parsed wherever it arrives.
const SMALL_BYTES: usize = 4096;
const SMALL_NESTING: usize = 8;
const SMALL_OPERATORS: usize = 64;

/// Words that make what stands before them a part of something larger.
const OPERATORS: [&str; 22] = [
    "IS", "ISNULL", "NOTNULL", "NOT", "LIKE", "ILIKE", "RLIKE", "REGEXP", "SIMILAR", "BETWEEN",
    "IN", "AT", "COLLATE", "OVERLAPS", "OPERATOR", "DIV", "XOR", "CASE", "WHEN", "ELSE", "ESCAPE",
    "MEMBER",
];

/// Words that end a list of tables.
const AFTER_TABLES: [&str; 16] = [
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "SELECT",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "WINDOW",
    "RETURNING",
    "WHEN",
    "SET",
    "VALUES",
];

/// A text that is not too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Whether parsing it takes neither time nor stack to speak of.
    pub is_small: bool,
}

/// Measures a text.
///
/// # Errors
/// 54000 where it is too long, 54001 where it is too complex.
pub fn measure(text: &str) -> Result<Extent> {
    if text.len() > BYTES_MAX {
        return Err(too_long(format!("{} bytes of at most {BYTES_MAX}", text.len())));
    }
    let mut walk = Walk::new();
    for token in Lexer::new(text).filter(Token::is_significant) {
        walk.take(&token)?;
    }
    let is_small = text.len() <= SMALL_BYTES
        && walk.explains_most <= 2
        && walk.nesting_most <= SMALL_NESTING
        && walk.operators_most <= SMALL_OPERATORS;
    Ok(Extent { is_small })
}

/// What is open: a bracket, or the statement itself.
#[derive(Default)]
struct Level {
    links: usize,
    operators: usize,
    subscripts: usize,
    lists_tables: bool,
}

struct Walk {
    levels: Vec<Level>,
    tokens: usize,
    queries: usize,
    joins: usize,
    set_operations: usize,
    explains: usize,
    /// Types that are open: `ARRAY<`.
    types: usize,
    nesting_most: usize,
    operators_most: usize,
    explains_most: usize,
    last: Last,
}

/// What the last token was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A bracket that closed.
    Bracket,
    /// A type that has others within it.
    Collection,
    Distinct,
    Other,
}

impl Walk {
    fn new() -> Self {
        Self {
            levels: vec![Level::default()],
            tokens: 0,
            queries: 0,
            joins: 0,
            set_operations: 0,
            explains: 0,
            types: 0,
            nesting_most: 0,
            operators_most: 0,
            explains_most: 0,
            last: Last::Other,
        }
    }

    fn take(&mut self, token: &Token<'_>) -> Result<()> {
        self.tokens += 1;
        if self.tokens > TOKENS_MAX {
            return Err(too_long(format!("more than {TOKENS_MAX} words and signs")));
        }
        let last = std::mem::replace(&mut self.last, Last::Other);
        match token.kind {
            TokenKind::Word => self.word(token.text, last),
            TokenKind::Sign => self.sign(token.text.as_bytes()[0], last),
            _ => Ok(()),
        }
    }

    fn sign(&mut self, sign: u8, last: Last) -> Result<()> {
        match sign {
            b'(' | b'[' | b'{' => {
                if sign != b'[' || last != Last::Bracket {
                    self.level().subscripts = 0;
                }
                self.levels.push(Level::default());
                self.nesting_most = self.nesting_most.max(self.levels.len() - 1);
                within(self.levels.len() - 1, NESTING_MAX, "brackets within brackets")?;
            }
            b')' | b']' | b'}' => {
                if self.levels.len() > 1 {
                    self.levels.pop();
                }
                self.last = Last::Bracket;
                let level = self.level();
                level.subscripts += 1;
                within(level.subscripts, SUBSCRIPTS_MAX, "subscripts or dimensions")?;
                self.operator()?;
            }
            b',' => {
                let level = self.level();
                let is_join = level.lists_tables;
                *level = Level { lists_tables: is_join, ..Level::default() };
                if is_join {
                    self.join()?;
                }
            }
            b';' => {
                self.levels = vec![Level::default()];
                (self.queries, self.joins, self.types) = (0, 0, 0);
                (self.set_operations, self.explains) = (0, 0);
            }
            b'+' | b'-' => self.link()?,
            b'<' if last == Last::Collection => {
                self.types += 1;
                within(self.types, SUBSCRIPTS_MAX, "types within types")?;
            }
            b'>' if self.types > 0 => self.types -= 1,
            b'*' | b'/' | b'%' | b'^' | b'|' | b'&' | b'#' | b'~' | b'!' | b'<' | b'>' | b'='
            | b'@' | b'?' | b':' => self.operator()?,
            _ => {}
        }
        Ok(())
    }

    fn word(&mut self, word: &str, last: Last) -> Result<()> {
        // No word that counts is longer.
        if word.len() > 9 {
            return Ok(());
        }
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        if is("AND") || is("OR") {
            return self.link();
        }
        if ["ARRAY", "STRUCT", "MAP"].into_iter().any(is) {
            self.last = Last::Collection;
            return Ok(());
        }
        if is("DISTINCT") {
            self.last = Last::Distinct;
            return Ok(());
        }
        if (is("FROM") && last != Last::Distinct) || is("USING") {
            self.level().lists_tables = true;
        } else if AFTER_TABLES.into_iter().any(is) {
            self.level().lists_tables = false;
        }
        if is("SELECT") {
            self.queries += 1;
            return within(self.queries, QUERIES_MAX, "queries");
        }
        if is("UNION") || is("INTERSECT") || is("EXCEPT") {
            self.set_operations += 1;
            return within(self.set_operations, QUERIES_MAX, "set operations");
        }
        if is("JOIN") {
            return self.join();
        }
        if is("EXPLAIN") {
            self.explains += 1;
            self.explains_most = self.explains_most.max(self.explains);
            return within(self.explains, EXPLAINS_MAX, "EXPLAINs");
        }
        match OPERATORS.into_iter().any(is) {
            true => self.operator(),
            false => Ok(()),
        }
    }

    fn join(&mut self) -> Result<()> {
        self.joins += 1;
        within(self.joins, JOINS_MAX, "joined tables")
    }

    fn link(&mut self) -> Result<()> {
        // Nothing of the kind stands within types: it was a comparison with a name like theirs.
        self.types = 0;
        let level = self.level();
        level.subscripts = 0;
        level.links += 1;
        let (links, operators) = (level.links, level.links + level.operators);
        self.operators_most = self.operators_most.max(operators);
        within(links, LINKS_MAX, "operators in one expression")
    }

    fn operator(&mut self) -> Result<()> {
        let level = self.level();
        level.operators += 1;
        let (all, operators) = (level.links + level.operators, level.operators);
        self.operators_most = self.operators_most.max(all);
        within(operators, OPERATORS_MAX, "operators in one expression")
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }
}

fn within(count: usize, most: usize, what: &str) -> Result<()> {
    match count <= most {
        true => Ok(()),
        false => Err(too_complex(format!("more than {most} {what}"))),
    }
}

fn too_long(detail: String) -> Error {
    Error::invalid("the statement is too long")
        .with_sqlstate("54000")
        .with_detail(detail)
        .with_hint("load many rows with COPY or `stoa load`, and look long lists up in a table")
}

/// The error of a statement that nobody is to walk over.
pub(super) fn too_complex(detail: String) -> Error {
    Error::invalid("the statement is too complex")
        .with_sqlstate("54001")
        .with_detail(detail)
        .with_hint("write long lists with IN or VALUES, or split the statement")
}

/// Refuses to write parts of a statement as often as would make it longer than a statement may be: `bytes` is the
/// length of all copies.
///
/// # Errors
/// 54000.
pub(crate) fn refuse_copies(bytes: usize) -> Result<()> {
    if bytes <= BYTES_MAX {
        return Ok(());
    }
    let message = format!("the statement, written out, would have more than {BYTES_MAX} bytes");
    Err(Error::invalid(message)
        .with_sqlstate("54000")
        .with_hint("write fewer columns or clauses, or shorter queries and conditions"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<&'static str> {
        measure(text).err().map(|error| error.sqlstate())
    }

    fn list(count: usize, each: &str, between: &str) -> String {
        vec![each; count].join(between)
    }

    #[test]
    fn long_but_shallow_texts_pass() {
        for (what, text) in [
            ("OR", format!("SELECT 1 WHERE {}", list(10_000, "a = 1", " OR "))),
            ("AND", format!("SELECT 1 WHERE {}", list(10_000, "a <> 1", " AND "))),
            ("both", format!("SELECT 1 WHERE {}", list(10_000, "(a = 1 AND b = 2)", " OR "))),
            ("plus", format!("SELECT {}", list(100_000, "1", "+"))),
            ("IN", format!("SELECT 1 WHERE a IN ({})", list(100_000, "1", ", "))),
            ("UNION", list(2_000, "SELECT a, b FROM t WHERE c = 1", " UNION ALL ")),
            ("VALUES", format!("INSERT INTO t VALUES {}", list(100_000, "(1, 'a', -2)", ", "))),
            ("columns", format!("SELECT {} FROM t", list(120_000, "a + 1 AS b", ", "))),
            ("arrays", format!("SELECT {}", list(1_000, "ARRAY[1][1]", ", "))),
            ("calls", format!("SELECT {}", list(1_000, "f(1)", " || "))),
            ("text", format!("SELECT '{}'", "((((((".repeat(100_000))),
            ("comment", format!("SELECT 1 /* {} */", "((((((".repeat(100_000))),
            ("line", format!("SELECT 1 -- {}\n", "((((((".repeat(100_000))),
            ("distinct", format!("SELECT a IS DISTINCT FROM b, {}", list(10_000, "1", ", "))),
            ("statements", list(20_000, "SELECT 1 FROM a, b", "; ")),
        ] {
            assert_eq!(code(&text), None, "{what}");
            assert!(!measure(&text).unwrap().is_small, "{what}");
        }
    }

    #[test]
    fn deep_texts_are_refused() {
        for (what, text) in [
            ("brackets", format!("SELECT {}", "(".repeat(501))),
            ("mixed", format!("SELECT {}", "([{".repeat(200))),
            ("bits", format!("SELECT {}", list(40_000, "1", "|"))),
            ("casts", format!("SELECT 1{}", "::int".repeat(40_000))),
            ("is null", format!("SELECT 1{}", " IS NULL".repeat(40_000))),
            ("plus", format!("SELECT {}", list(140_000, "1", "+"))),
            ("explain", format!("{} SELECT 1", "EXPLAIN ".repeat(445))),
            ("dimensions", format!("SELECT NULL::int{}", "[]".repeat(65))),
            ("subscripts", format!("SELECT a{}", "[1]".repeat(65))),
            ("types", format!("CREATE TABLE t (a {}", "ARRAY<".repeat(65))),
            ("union", list(5_001, "SELECT 1", " UNION ALL ")),
            ("union of lists", list(5_001, "SELECT 1, 2", " UNION ALL ")),
            ("joins", format!("SELECT 1 FROM t {}", " JOIN t ON true".repeat(501))),
            ("values", list(5_002, "VALUES (1)", " UNION ALL ")),
            ("types with commas", format!("CREATE TABLE t (a {}", "MAP<INT, ".repeat(65))),
            ("tables", format!("SELECT 1 FROM {}", list(502, "t", ", "))),
        ] {
            assert_eq!(code(&text), Some("54001"), "{what}");
        }
        assert_eq!(code(&" ".repeat(BYTES_MAX + 1)), Some("54000"));
        assert_eq!(code(&"1 ".repeat(TOKENS_MAX + 1)), Some("54000"));
    }

    #[test]
    fn ordinary_statements_are_small() {
        for text in [
            "",
            "SELECT account, sum(clicks) FROM ad_report WHERE day BETWEEN 1 AND 2 GROUP BY 1",
            "SET statement_timeout = 1000",
            "SELECT $1::int + 2 FROM a JOIN b ON a.x = b.y, c",
            ")))",
            "SELECT 'é' || \"ü\" -- (",
        ] {
            assert_eq!(measure(text).unwrap(), Extent { is_small: true }, "{text}");
        }
        assert!(!measure(&"(".repeat(9)).unwrap().is_small);
    }
}
