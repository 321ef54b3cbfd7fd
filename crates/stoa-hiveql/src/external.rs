//! `CREATE EXTERNAL TABLE`, and what it and `INSERT OVERWRITE DIRECTORY` say of files.

use sqlparser::tokenizer::Token;
use stoa_error::{Error, Result};

use crate::cursor::{Cursor, literal};
use crate::definitions;
use crate::options::Options;

/// What stands for a class in `INPUTFORMAT`, by what its name ends with.
const INPUT_FORMATS: [(&str, &str); 4] = [
    ("TextInputFormat", "TEXTFILE"),
    ("SequenceFileInputFormat", "SEQUENCEFILE"),
    ("OrcInputFormat", "ORC"),
    ("MapredParquetInputFormat", "PARQUET"),
];

/// What follows `CREATE EXTERNAL TABLE`, as Stoa reads it.
///
/// # Errors
/// 42601; 0A000 for clauses that Stoa has not.
pub(crate) fn create(cursor: &mut Cursor<'_>, options: Options) -> Result<String> {
    let mut all = "CREATE EXTERNAL TABLE ".to_owned();
    if cursor.take(&["if", "not", "exists"]) {
        all.push_str("IF NOT EXISTS ");
    }
    all.push_str(&cursor.table()?);
    if cursor.looking_at(&["like"]) {
        return Err(refused("LIKE of an external table", "write its columns"));
    }
    if *cursor.peek() != Token::LParen {
        return Err(cursor.wrong("the columns, in parentheses"));
    }
    all.push_str(&definitions::columns(cursor, options)?);
    let mut has_location = false;
    while !cursor.is_end() {
        if cursor.take(&["comment"]) {
            all.push_str(&format!(" COMMENT {}", literal(&cursor.string()?)));
        } else if cursor.take(&["partitioned", "by"]) {
            all.push_str(&format!(" PARTITIONED BY ({})", definitions::partitions(cursor)?));
        } else if cursor.take(&["location"]) {
            has_location = true;
            all.push_str(&format!(" LOCATION {}", literal(&cursor.string()?)));
        } else if cursor.take(&["tblproperties"]) {
            if let Some(properties) = definitions::properties(cursor)? {
                all.push_str(&format!(" TBLPROPERTIES ({properties})"));
            }
        } else if let Some(clause) = file_clause(cursor)? {
            all.push_str(&clause);
        } else if cursor.looking_at(&["stored", "by"]) {
            return Err(refused(
                "STORED BY",
                "write STORED AS TEXTFILE, SEQUENCEFILE, ORC or PARQUET",
            ));
        } else if cursor.looking_at(&["as"]) {
            return Err(refused(
                "CREATE EXTERNAL TABLE … AS",
                "create it with columns, then INSERT INTO",
            ));
        } else {
            return Err(definitions::refused_clause(cursor));
        }
    }
    match has_location {
        true => Ok(all),
        false => Err(refused(
            "an external table without LOCATION",
            "write LOCATION 'directory', or CREATE TABLE",
        )),
    }
}

/// `ROW FORMAT …` or `STORED AS …`; `None` where neither stands.
///
/// # Errors
/// As [`create`].
pub(crate) fn file_clause(cursor: &mut Cursor<'_>) -> Result<Option<String>> {
    if cursor.take(&["row", "format", "serde"]) {
        let mut all = format!(" ROW FORMAT SERDE {}", literal(&cursor.string()?));
        if cursor.take(&["with", "serdeproperties"])
            && let Some(properties) = definitions::properties(cursor)?
        {
            all.push_str(&format!(" WITH SERDEPROPERTIES ({properties})"));
        }
        return Ok(Some(all));
    }
    if cursor.take(&["row", "format", "delimited"]) {
        let mut all = " ROW FORMAT DELIMITED".to_owned();
        while let Some(words) = delimiter(cursor) {
            all.push_str(&format!(" {words} {}", literal(&cursor.string()?)));
        }
        return Ok(Some(all));
    }
    if !cursor.take(&["stored", "as"]) {
        return Ok(None);
    }
    if !cursor.take(&["inputformat"]) {
        return Ok(Some(format!(" STORED AS {}", cursor.name()?.to_uppercase())));
    }
    let class = cursor.string()?;
    cursor.expect(&["outputformat"])?;
    cursor.string()?;
    let known = INPUT_FORMATS.iter().find(|(ending, _)| class.ends_with(ending));
    let (_, name) = known.ok_or_else(|| {
        refused(
            &format!("STORED AS INPUTFORMAT '{class}'"),
            "write STORED AS TEXTFILE, SEQUENCEFILE, ORC or PARQUET",
        )
    })?;
    Ok(Some(format!(" STORED AS {name}")))
}

/// The words of one clause of `ROW FORMAT DELIMITED`.
fn delimiter(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    const CLAUSES: [(&[&str], &str); 6] = [
        (&["fields", "terminated", "by"], "FIELDS TERMINATED BY"),
        (&["escaped", "by"], "ESCAPED BY"),
        (&["collection", "items", "terminated", "by"], "COLLECTION ITEMS TERMINATED BY"),
        (&["map", "keys", "terminated", "by"], "MAP KEYS TERMINATED BY"),
        (&["lines", "terminated", "by"], "LINES TERMINATED BY"),
        (&["null", "defined", "as"], "NULL DEFINED AS"),
    ];
    CLAUSES.iter().find(|(words, _)| cursor.take(words)).map(|(_, written)| *written)
}

fn refused(clause: &str, hint: &str) -> Error {
    Error::unsupported(format!("{clause} is not supported")).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use crate::{Options, translate};

    #[test]
    fn clauses_are_kept() {
        let hive = "create external table if not exists d.t (a int comment 'x', b string) partitioned by (c date) \
                    row format delimited fields terminated by '\\t' lines terminated by '\\n' \
                    stored as textfile location '/x' tblproperties ('skip.header.line.count'='1')";
        let stoa = "CREATE EXTERNAL TABLE IF NOT EXISTS \"d\".\"t\" (\"a\" integer COMMENT 'x', \"b\" text) \
                    PARTITIONED BY (\"c\" date) ROW FORMAT DELIMITED FIELDS TERMINATED BY '\t' LINES TERMINATED BY '\n' \
                    STORED AS TEXTFILE LOCATION '/x' TBLPROPERTIES ('skip.header.line.count' = '1')";
        assert_eq!(translate(hive, Options::default()).unwrap(), stoa);
        let hive = "insert overwrite local directory '/x' row format delimited fields terminated by ',' select 1";
        let stoa = translate(hive, Options::default()).unwrap();
        assert!(stoa.starts_with("INSERT OVERWRITE DIRECTORY '/x' ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' SELECT"), "{stoa}");
        for refused in [
            "create external table t (a int) stored as orc",
            "create external table t like u location '/x'",
            "create external table t (a int) location '/x' as select 1",
            "create external table t (a int) stored by 'x' location '/x'",
        ] {
            assert_eq!(
                translate(refused, Options::default()).unwrap_err().sqlstate(),
                "0A000",
                "{refused}"
            );
        }
    }
}
