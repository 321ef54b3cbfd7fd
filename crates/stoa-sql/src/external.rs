//! What `CREATE EXTERNAL TABLE` says of files, in Hive's words.
//!
//! ```text
//! [ROW FORMAT DELIMITED [FIELDS TERMINATED BY c [ESCAPED BY c]] [COLLECTION ITEMS TERMINATED BY c]
//!    [MAP KEYS TERMINATED BY c] [LINES TERMINATED BY c] [NULL DEFINED AS text]]
//! [ROW FORMAT SERDE 'class' [WITH SERDEPROPERTIES ('key' = 'value', …)]]
//! [STORED AS format] LOCATION 'directory'
//! ```
//! Also of `INSERT OVERWRITE DIRECTORY`. What the words may be is judged by whoever makes the table.

use datafusion_sql::sqlparser::dialect::GenericDialect;
use datafusion_sql::sqlparser::keywords::Keyword;
use datafusion_sql::sqlparser::parser::{Parser, ParserError};
use stoa_error::Result;

use crate::defining::DefiningQuery;
use crate::lexer::Lexer;
use crate::statement::{StatementKind, WriteDirectoryStatement};
use crate::syntax_error::from_sql_parser;
use crate::{Bounded, Parsed, Rewrite, literal, parse_word};

/// Files that a statement describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalFiles {
    /// The directory.
    pub location: Option<String>,
    /// `STORED AS`
    pub stored_as: Option<String>,
    /// `ROW FORMAT SERDE`
    pub serde: Option<String>,
    /// Whether `ROW FORMAT DELIMITED` is there.
    pub is_delimited: bool,
    /// `SERDEPROPERTIES`, and the clauses of `ROW FORMAT DELIMITED` by Hive's names of them.
    pub serde_properties: Vec<(String, String)>,
}

/// Whether a text that begins with `INSERT` is `INSERT OVERWRITE [LOCAL] DIRECTORY`.
pub(super) fn is_directory_in(text: &str) -> bool {
    let mut words = Lexer::new(text).filter(|token| token.is_significant()).skip(1);
    let overwrites = words.next().is_some_and(|word| word.is_word("overwrite"));
    let third = words.next();
    let is = |word: &str| third.as_ref().is_some_and(|third| third.is_word(word));
    overwrites
        && (is("directory")
            || is("local") && words.next().is_some_and(|word| word.is_word("directory")))
}

/// Parses it.
///
/// # Errors
/// 42601, and those of the query.
pub(super) fn parse_directory(text: &str, others: Rewrite) -> Result<StatementKind> {
    let dialect = Bounded::new(GenericDialect {}, text.len());
    let explain = |error: ParserError| from_sql_parser(&error, text);
    let mut parser = Parser::new(&dialect).try_with_sql(text).map_err(explain)?;
    for word in ["INSERT", "OVERWRITE", "LOCAL", "DIRECTORY"] {
        parse_word(&mut parser, word);
    }
    let location = Some(parser.parse_literal_string().map_err(explain)?);
    let mut files = ExternalFiles { location, ..ExternalFiles::default() };
    while parse_clause(&mut parser, &mut files).map_err(explain)? {}
    let query = DefiningQuery::parse(&mut parser, text, others)?;
    Ok(StatementKind::WriteDirectory(Box::new(WriteDirectoryStatement { files, query })))
}

/// Parses one of the clauses; whether there was one.
pub(super) fn parse_clause(parser: &mut Parser<'_>, files: &mut ExternalFiles) -> Parsed<bool> {
    if parser.parse_keywords(&[Keyword::STORED, Keyword::AS]) {
        let name = parser.parse_identifier()?.value;
        return once(&mut files.stored_as, name, "STORED AS");
    }
    if parser.parse_keyword(Keyword::LOCATION) {
        let location = parser.parse_literal_string()?;
        return once(&mut files.location, location, "LOCATION");
    }
    if !parser.parse_keywords(&[Keyword::ROW, Keyword::FORMAT]) {
        return Ok(false);
    }
    if files.is_delimited || files.serde.is_some() {
        return Err(twice("ROW FORMAT"));
    }
    if parse_word(parser, "SERDE") {
        files.serde = Some(parser.parse_literal_string()?);
        if parser.parse_keyword(Keyword::WITH) {
            if !parse_word(parser, "SERDEPROPERTIES") {
                let found = parser.peek_token();
                return parser.expected("SERDEPROPERTIES", found);
            }
            files.serde_properties = literal::parse_options(parser)?;
        }
        return Ok(true);
    }
    if !parse_word(parser, "DELIMITED") {
        let found = parser.peek_token();
        return parser.expected("DELIMITED or SERDE", found);
    }
    files.is_delimited = true;
    while parse_delimiter(parser, files)? {}
    Ok(true)
}

fn parse_delimiter(parser: &mut Parser<'_>, files: &mut ExternalFiles) -> Parsed<bool> {
    let (key, words): (&str, &[&str]) = match () {
        () if parse_word(parser, "FIELDS") => ("field.delim", &["TERMINATED", "BY"]),
        () if parse_word(parser, "ESCAPED") => ("escape.delim", &["BY"]),
        () if parse_word(parser, "COLLECTION") => {
            ("collection.delim", &["ITEMS", "TERMINATED", "BY"])
        }
        () if parse_word(parser, "MAP") => ("mapkey.delim", &["KEYS", "TERMINATED", "BY"]),
        () if parse_word(parser, "LINES") => ("line.delim", &["TERMINATED", "BY"]),
        () if parse_word(parser, "NULL") => ("serialization.null.format", &["DEFINED", "AS"]),
        () => return Ok(false),
    };
    for word in words {
        if !parse_word(parser, word) {
            let found = parser.peek_token();
            return parser.expected(word, found);
        }
    }
    files.serde_properties.push((key.to_owned(), parser.parse_literal_string()?));
    Ok(true)
}

fn once(place: &mut Option<String>, value: String, what: &str) -> Parsed<bool> {
    match place.replace(value) {
        None => Ok(true),
        Some(_) => Err(twice(what)),
    }
}

fn twice(what: &str) -> ParserError {
    ParserError::ParserError(format!("{what} is there twice"))
}

#[cfg(test)]
mod tests {
    use crate::{StatementKind, parse};

    #[test]
    fn hives_clauses_are_read() {
        let sql = "CREATE EXTERNAL TABLE IF NOT EXISTS d.t (a int, b text) PARTITIONED BY (c date) \
                   ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\' NULL DEFINED AS '' \
                   STORED AS TEXTFILE LOCATION '/x' TBLPROPERTIES ('skip.header.line.count' = '1')";
        let StatementKind::CreateTable(table) = parse(sql, |_| Ok(None)).unwrap().remove(0).kind
        else {
            panic!()
        };
        let files = table.external.unwrap();
        assert_eq!(files.location.as_deref(), Some("/x"));
        assert_eq!(files.stored_as.as_deref(), Some("TEXTFILE"));
        let keys: Vec<&str> = files.serde_properties.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["field.delim", "escape.delim", "serialization.null.format"]);
        assert_eq!((table.columns.len(), table.partition_by.len()), (3, 1));
        let sql =
            "INSERT OVERWRITE LOCAL DIRECTORY '/x' STORED AS ORC SELECT a, ')' FROM t WHERE b > 1";
        let StatementKind::WriteDirectory(write) = parse(sql, |_| Ok(None)).unwrap().remove(0).kind
        else {
            panic!()
        };
        assert_eq!(write.files.stored_as.as_deref(), Some("ORC"));
        assert_eq!(write.query.text, "SELECT a, ')' FROM t WHERE b > 1");
        for wrong in [
            "INSERT OVERWRITE DIRECTORY SELECT 1",
            "INSERT OVERWRITE DIRECTORY '/x' INSERT INTO t VALUES (1)",
            "CREATE EXTERNAL TABLE t (a int)",
            "CREATE EXTERNAL TABLE t (a int) LOCATION '/x' LOCATION '/y'",
            "CREATE EXTERNAL TABLE t (a int) ROW FORMAT x LOCATION '/x'",
            "CREATE EXTERNAL TABLE t LOCATION '/x' AS SELECT 1",
        ] {
            assert_eq!(parse(wrong, |_| Ok(None)).unwrap_err().sqlstate(), "42601", "{wrong}");
        }
    }
}
