//! `format`, `quote_ident`, `quote_literal` and their relatives: texts that become parts of statements.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::call::failure;
use super::declared::{Declared, Row, Type};
use super::made_texts::{VALUE_BYTES_MAX, too_large};
use super::refused::refusal;
use Type::{Shown, Text, Texts};

/// A pattern and its arguments.
const FORMAT: &[Type] = &{
    let mut takes = [Shown; 101];
    takes[0] = Text;
    takes
};

const fn declared(
    name: &'static str,
    takes: &'static [Type],
    makes: Type,
    compute: fn(&Row<'_>) -> Result<ArrayRef>,
) -> Declared {
    Declared { name, called: name, takes, needed: 1, makes, json: None, compute }
}

pub(super) const FUNCTIONS: &[Declared] = &[
    declared("format", FORMAT, Text, format_rows),
    declared("quote_ident", &[Text], Text, |row| {
        row.each_text(|at| Ok(row.text(0, at).map(identifier)))
    }),
    declared("quote_literal", &[Shown], Text, |row| {
        row.each_text(|at| Ok(row.text(0, at).map(literal)))
    }),
    declared("quote_nullable", &[Shown], Text, |row| {
        row.each_text_or_null(|at| Ok(Some(row.text(0, at).map_or("NULL".to_owned(), literal))))
    }),
    declared("parse_ident", &[Text], Texts, |row| {
        row.each_list(true, |at| row.text(0, at).map(parts_of_name).transpose())
    }),
];

/// Words that are quoted where they are names: all that PostgreSQL reserves in some way.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// A name, in quotes where it needs them.
fn identifier(name: &str) -> String {
    let mut letters = name.chars();
    let begins_plain = letters.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_');
    let is_plain = begins_plain
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && RESERVED.binary_search(&name).is_err();
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A text as a literal.
fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match text.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

fn format_rows(row: &Row<'_>) -> Result<ArrayRef> {
    row.each_text_or_null(|at| match row.text(0, at) {
        Some(pattern) => formatted(pattern, row.columns.len() - 1, |n| row.text(n, at)).map(Some),
        None => Ok(None),
    })
}

/// A specifier: `%[position$][flags][width]type`.
#[derive(Default)]
struct Specifier {
    position: Option<usize>,
    is_left: bool,
    width: i64,
    kind: char,
}

fn too_few() -> datafusion::error::DataFusionError {
    failure("22023", "too few arguments for format()")
}

fn unterminated() -> datafusion::error::DataFusionError {
    let hint = "For a single \"%\" use \"%%\".";
    refusal("22023", "unterminated format() type specifier".to_owned(), hint)
}

/// The text of a pattern; `argument` gives the arguments from 1 to `given`.
fn formatted<'a>(
    pattern: &str,
    given: usize,
    argument: impl Fn(usize) -> Option<&'a str>,
) -> Result<String> {
    let mut out = String::with_capacity(pattern.len());
    let (mut rest, mut last) = (pattern, 0);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let specifier = specifier(&mut rest, &mut last, given, &argument)?;
        let place = specifier.position.unwrap_or(last + 1);
        last = place;
        if !matches!(specifier.kind, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{}\"", specifier.kind);
            let hint = "For a single \"%\" use \"%%\".";
            return Err(refusal("22023", message, hint));
        }
        if place > given {
            return Err(too_few());
        }
        let value = argument(place);
        let text = match (specifier.kind, value) {
            ('I', None) => {
                return Err(failure(
                    "22004",
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            ('I', Some(value)) => identifier(value),
            ('L', None) => "NULL".to_owned(),
            ('L', Some(value)) => literal(value),
            (_, value) => value.unwrap_or_default().to_owned(),
        };
        padded(&text, &specifier, &mut out)?;
    }
    out.push_str(rest);
    Ok(out)
}

fn number(rest: &mut &str) -> Result<Option<i64>> {
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 {
        return Ok(None);
    }
    let number = rest[..digits].parse::<i32>();
    *rest = &rest[digits..];
    number
        .map(|number| Some(i64::from(number)))
        .map_err(|_| failure("22003", "number is out of range"))
}

fn specifier<'a>(
    rest: &mut &str,
    last: &mut usize,
    given: usize,
    argument: &impl Fn(usize) -> Option<&'a str>,
) -> Result<Specifier> {
    let mut found = Specifier::default();
    let mut width = number(rest)?;
    if let (Some(position), Some(behind)) = (width, rest.strip_prefix('$')) {
        *rest = behind;
        found.position = Some(place_of(position)?);
        width = None;
    }
    if width.is_none() {
        while let Some(behind) = rest.strip_prefix('-') {
            found.is_left = true;
            *rest = behind;
        }
        width = match rest.strip_prefix('*') {
            Some(behind) => {
                *rest = behind;
                let place = match number(rest)? {
                    Some(position) => {
                        *rest = rest.strip_prefix('$').ok_or_else(|| {
                            failure("22023", "width argument position must be ended by \"$\"")
                        })?;
                        place_of(position)?
                    }
                    None => *last + 1,
                };
                *last = place;
                if place > given {
                    return Err(too_few());
                }
                let width = argument(place).unwrap_or("0").trim();
                Some(width.parse::<i32>().map(i64::from).map_err(|_| {
                    failure("22P02", format!("invalid input syntax for type integer: \"{width}\""))
                })?)
            }
            None => number(rest)?,
        };
    }
    found.width = width.unwrap_or(0);
    if found.width < 0 {
        found.is_left = true;
        found.width = -found.width;
    }
    let mut letters = rest.chars();
    found.kind = letters.next().ok_or_else(unterminated)?;
    *rest = letters.as_str();
    Ok(found)
}

fn place_of(position: i64) -> Result<usize> {
    usize::try_from(position).ok().filter(|place| *place > 0).ok_or_else(|| {
        failure("22023", "format specifies argument 0, but arguments are numbered from 1")
    })
}

fn padded(text: &str, specifier: &Specifier, out: &mut String) -> Result<()> {
    let width = usize::try_from(specifier.width).unwrap_or(usize::MAX);
    let blanks = width.saturating_sub(text.chars().count());
    if out.len().saturating_add(text.len()).saturating_add(blanks) > VALUE_BYTES_MAX {
        return Err(too_large("format"));
    }
    let blanks = " ".repeat(blanks);
    match specifier.is_left {
        true => out.extend([text, &blanks]),
        false => out.extend([&blanks, text]),
    }
    Ok(())
}

/// The parts of a name with points between them, in small letters where they have no quotes.
fn parts_of_name(name: &str) -> Result<Vec<Option<String>>> {
    let invalid = || failure("22023", format!("string is not a valid identifier: \"{name}\""));
    let mut parts = Vec::new();
    let mut rest = name.trim_start();
    loop {
        let part = match rest.strip_prefix('"') {
            Some(mut behind) => {
                let mut part = String::new();
                loop {
                    let end = behind.find('"').ok_or_else(invalid)?;
                    part.push_str(&behind[..end]);
                    behind = &behind[end + 1..];
                    match behind.strip_prefix('"') {
                        Some(more) => {
                            part.push('"');
                            behind = more;
                        }
                        None => break,
                    }
                }
                rest = behind;
                part
            }
            None => {
                let is_part =
                    |c: char| c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
                let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
                let part = rest[..end].to_lowercase();
                rest = &rest[end..];
                match part.chars().next() {
                    Some(first) if !first.is_ascii_digit() && first != '$' => part,
                    _ => return Err(invalid()),
                }
            }
        };
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(Some(part));
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind.trim_start(),
            None if rest.is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert!(RESERVED.is_sorted());
        for (name, quoted) in [
            ("foo", "foo"),
            ("a1_", "a1_"),
            ("Foo bar", "\"Foo bar\""),
            ("a\"b", "\"a\"\"b\""),
            ("select", "\"select\""),
            ("between", "\"between\""),
            ("1a", "\"1a\""),
            ("a$b", "\"a$b\""),
            ("", "\"\""),
        ] {
            assert_eq!(identifier(name), quoted);
        }
        assert_eq!(literal("a\\b'"), r"E'a\\b'''");
    }

    #[test]
    fn patterns_are_those_of_postgresql() {
        let args = [Some("a"), Some("B c"), None, Some("10"), Some("-7")];
        let check = |pattern: &str, expected: Option<&str>| {
            let found = formatted(pattern, args.len(), |n| args[n - 1]);
            assert_eq!(found.ok().as_deref(), expected, "{pattern}");
        };
        check("%s %s", Some("a B c"));
        check("%2$I.%1$I", Some("\"B c\".a"));
        check("%3$L|%3$s|%%", Some("NULL||%"));
        check("|%5s|%-5s|", Some("|    a|B c  |"));
        check("%1$*4$s|%1$*5$s|", Some("         a|a      |"));
        check("%3$I", None);
        check("%6$s", None);
        check("%0$s", None);
        check("%x", None);
        check("%", None);
        check("%99999999999s", None);
        check("%2147483647s", None);
        check("%*", None);
    }

    #[test]
    fn names_are_taken_apart() {
        let parts = |name: &str| {
            parts_of_name(name).ok().map(|of| of.into_iter().flatten().collect::<Vec<_>>())
        };
        assert_eq!(parts(r#" A . "B""c" "#), Some(vec!["a".to_owned(), "B\"c".to_owned()]));
        for wrong in ["", "a b", "1a", "a.", "\"a", "a..b", ".", "\"\""] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
