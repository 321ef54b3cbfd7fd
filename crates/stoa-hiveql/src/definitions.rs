//! `CREATE`, `ALTER`, `DROP`, `TRUNCATE`, `USE`, `ANALYZE`.
//!
//! Clauses that say how Hive stores a table are read; those that Stoa cannot keep are refused by name.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use stoa_error::{Error, Result};

use crate::cursor::{Cursor, expr_of, literal, quoted};
use crate::options::Options;
use crate::types::column_type;
use crate::{partitions, queries};

/// The statement of Stoa's that does the same.
///
/// # Errors
/// As [`crate::translate`].
pub(crate) fn translate(tokens: &[TokenWithSpan], options: Options) -> Result<String> {
    let mut cursor = Cursor::new(tokens);
    match () {
        () if cursor.take(&["use"]) => {
            let name = cursor.name()?;
            cursor.expect_end()?;
            let is_default = name == crate::lexer::DEFAULT_DATABASE;
            Ok(format!(
                "USE {}",
                quoted(if is_default { crate::lexer::DEFAULT_NAMESPACE } else { &name })
            ))
        }
        () if cursor.take(&["analyze", "table"]) => {
            let name = cursor.table()?;
            // Statistics are kept with the files; what is asked for is there.
            Ok(format!("ANALYZE {name}"))
        }
        () if cursor.take(&["msck"]) => {
            let _ = cursor.take(&["repair"]);
            cursor.expect(&["table"])?;
            let name = cursor.table()?;
            for action in ["add", "drop", "sync"] {
                let _ = cursor.take(&[action, "partitions"]);
            }
            cursor.expect_end()?;
            Ok(format!("ALTER TABLE {name} RECOVER PARTITIONS"))
        }
        () if cursor.take(&["truncate"]) => truncate(&mut cursor),
        () if cursor.take(&["drop"]) => drop(&mut cursor),
        () if cursor.take(&["create"]) => create(&mut cursor, options),
        () if cursor.take(&["alter"]) => alter(&mut cursor, options),
        () => Err(cursor.wrong("CREATE, ALTER, DROP, TRUNCATE, USE or ANALYZE TABLE")),
    }
}

fn refused(clause: &str, hint: &str) -> Error {
    Error::unsupported(format!("{clause} is not supported")).with_hint(hint)
}

fn truncate(cursor: &mut Cursor<'_>) -> Result<String> {
    let _ = cursor.take(&["table"]);
    let name = cursor.table()?;
    if cursor.looking_at(&["partition"]) {
        let spec = partitions::spec(cursor)?;
        cursor.expect_end()?;
        return Ok(format!("ALTER TABLE {name} TRUNCATE {spec}"));
    }
    let _ = cursor.take(&["force"]);
    cursor.expect_end()?;
    Ok(format!("TRUNCATE TABLE {name}"))
}

fn drop(cursor: &mut Cursor<'_>) -> Result<String> {
    let kind = match () {
        () if cursor.take(&["table"]) => "TABLE",
        () if cursor.take(&["view"]) => "VIEW",
        () if cursor.take(&["database"]) || cursor.take(&["schema"]) => "SCHEMA",
        () if cursor.take(&["role"]) => "ROLE",
        () => return Err(cursor.wrong("TABLE, VIEW, DATABASE or ROLE")),
    };
    let mut all = format!("DROP {kind} ");
    if cursor.take(&["if", "exists"]) {
        all.push_str("IF EXISTS ");
    }
    all.push_str(&cursor.table()?);
    match () {
        () if kind == "TABLE" && cursor.take(&["purge"]) => all.push_str(" PURGE"),
        () if kind == "SCHEMA" && cursor.take(&["cascade"]) => all.push_str(" CASCADE"),
        () => drop_restrict(cursor),
    }
    cursor.expect_end()?;
    Ok(all)
}

fn drop_restrict(cursor: &mut Cursor<'_>) {
    let _ = cursor.take(&["restrict"]);
}

fn create(cursor: &mut Cursor<'_>, options: Options) -> Result<String> {
    let replaces = cursor.take(&["or", "replace"]);
    if cursor.take(&["view"]) {
        return create_view(cursor, replaces, options);
    }
    if cursor.take(&["database"]) || cursor.take(&["schema"]) {
        return create_database(cursor);
    }
    if cursor.take(&["role"]) {
        if ["none", "all", "default"].iter().any(|word| cursor.looking_at(&[word])) {
            return Err(cursor.wrong("a name that is no word of SET ROLE"));
        }
        let name = quoted(&cursor.name()?);
        cursor.expect_end()?;
        return Ok(format!("CREATE ROLE {name}"));
    }
    let is_temporary = cursor.take(&["temporary"]);
    let _ = cursor.take(&["transactional"]) || cursor.take(&["managed"]);
    if cursor.take(&["table"]) {
        return create_table(cursor, is_temporary, options);
    }
    Err(cursor.wrong("TABLE, VIEW or DATABASE"))
}

fn create_database(cursor: &mut Cursor<'_>) -> Result<String> {
    let if_not_exists = if cursor.take(&["if", "not", "exists"]) { "IF NOT EXISTS " } else { "" };
    let name = quoted(&cursor.name()?);
    for clause in ["comment", "location", "managedlocation"] {
        if cursor.looking_at(&[clause]) {
            return Err(refused(
                &format!("{} of a database", clause.to_uppercase()),
                "databases have a name only",
            ));
        }
    }
    if cursor.looking_at(&["with", "dbproperties"]) {
        return Err(refused("DBPROPERTIES", "databases have a name only"));
    }
    cursor.expect_end()?;
    Ok(format!("CREATE SCHEMA {if_not_exists}{name}"))
}

fn create_view(cursor: &mut Cursor<'_>, replaces: bool, options: Options) -> Result<String> {
    let mut all = if replaces { "CREATE OR REPLACE VIEW " } else { "CREATE VIEW " }.to_owned();
    if cursor.take(&["if", "not", "exists"]) {
        all.push_str("IF NOT EXISTS ");
    }
    all.push_str(&cursor.table()?);
    if *cursor.peek() == Token::LParen {
        let mut names = Vec::new();
        for item in Cursor::new(cursor.parenthesised()?).items() {
            let mut item = Cursor::new(item);
            names.push(quoted(&item.name()?));
            if item.take(&["comment"]) {
                return Err(refused("COMMENT of a view's column", "COMMENT ON in Stoa's SQL"));
            }
            item.expect_end()?;
        }
        all.push_str(&format!(" ({})", names.join(", ")));
    }
    for (clause, hint) in [
        ("comment", "use COMMENT ON VIEW in Stoa's SQL"),
        ("tblproperties", "views have no properties"),
        ("partitioned", "views have no partitions"),
    ] {
        if cursor.looking_at(&[clause]) {
            return Err(refused(&format!("{} of a view", clause.to_uppercase()), hint));
        }
    }
    cursor.expect(&["as"])?;
    Ok(format!("{all} AS {}", queries::translated_view(cursor.rest(), options)?))
}

fn create_table(cursor: &mut Cursor<'_>, is_temporary: bool, options: Options) -> Result<String> {
    let mut all = if is_temporary { "CREATE TEMPORARY TABLE " } else { "CREATE TABLE " }.to_owned();
    if cursor.take(&["if", "not", "exists"]) {
        all.push_str("IF NOT EXISTS ");
    }
    all.push_str(&cursor.table()?);
    if cursor.take(&["like"]) {
        let like = cursor.table()?;
        let rest = clauses(cursor)?;
        cursor.expect_end()?;
        return Ok(format!("{all} LIKE {like}{rest}"));
    }
    if *cursor.peek() == Token::LParen {
        all.push_str(&columns(cursor, options)?);
    }
    all.push_str(&clauses(cursor)?);
    if cursor.take(&["as"]) {
        return Ok(format!("{all} AS {}", queries::translated(cursor.rest(), options)?));
    }
    cursor.expect_end()?;
    Ok(all)
}

/// ` (column, …)`
///
/// # Errors
/// As [`translate`].
pub(crate) fn columns(cursor: &mut Cursor<'_>, options: Options) -> Result<String> {
    let mut columns = Vec::new();
    let mut inner = Cursor::new(cursor.parenthesised()?);
    while columns.is_empty() || inner.take_token(&Token::Comma) {
        columns.push(column(&mut inner, options)?);
    }
    inner.expect_end()?;
    Ok(format!(" ({})", columns.join(", ")))
}

/// `name type [NOT NULL] [DEFAULT value] [COMMENT 'text']`, or `PRIMARY KEY (…) DISABLE NOVALIDATE`.
fn column(cursor: &mut Cursor<'_>, options: Options) -> Result<String> {
    for clause in ["constraint", "primary", "foreign", "unique", "check"] {
        if cursor.looking_at(&[clause])
            && !matches!(cursor.nth(1), Token::EOF)
            && is_constraint(cursor)
        {
            return Err(refused(
                "a constraint of a table",
                "NOT NULL and DEFAULT of columns are supported",
            ));
        }
    }
    let name = quoted(&cursor.name()?);
    let of = column_type(&cursor.data_type()?)?;
    let mut all = format!("{name} {of}");
    loop {
        if cursor.take(&["comment"]) {
            all.push_str(&format!(" COMMENT {}", literal(&cursor.string()?)));
        } else if cursor.take(&["not", "null"]) {
            all.push_str(" NOT NULL");
            // How Hive treats the constraint.
            for word in ["enable", "disable", "validate", "novalidate", "rely", "norely"] {
                let _ = cursor.take(&[word]);
            }
        } else if cursor.take(&["default"]) {
            let value = cursor.until(|cursor| {
                *cursor.peek() == Token::Comma
                    || cursor.looking_at(&["comment"])
                    || cursor.looking_at(&["not", "null"])
            });
            let mut value = expr_of(value)?;
            queries::rewrite(&mut value, options.nulls_last)?;
            all.push_str(&format!(" DEFAULT {value}"));
        } else if cursor.is_end() || *cursor.peek() == Token::Comma {
            return Ok(all);
        } else if ["primary", "unique", "check", "references", "constraint"]
            .iter()
            .any(|word| cursor.looking_at(&[word]))
        {
            return Err(refused("a constraint of a column", "NOT NULL and DEFAULT are supported"));
        } else {
            return Err(cursor.wrong("COMMENT, NOT NULL, DEFAULT, a comma or )"));
        }
    }
}

fn is_constraint(cursor: &Cursor<'_>) -> bool {
    let is_key = cursor.looking_at(&["primary", "key"]) || cursor.looking_at(&["foreign", "key"]);
    let is_call = *cursor.nth(1) == Token::LParen;
    let is_named = cursor.looking_at(&["constraint"]) && matches!(cursor.nth(2), Token::Word(_));
    is_key || is_call || is_named
}

/// What follows the columns.
fn clauses(cursor: &mut Cursor<'_>) -> Result<String> {
    let mut all = String::new();
    while !cursor.is_end() && !cursor.looking_at(&["as"]) && !cursor.looking_at(&["select"]) {
        if cursor.take(&["comment"]) {
            all.push_str(&format!(" COMMENT {}", literal(&cursor.string()?)));
        } else if cursor.take(&["partitioned", "by", "spec"]) {
            return Err(refused(
                "PARTITIONED BY SPEC",
                "SET stoa.dialect=postgres, and PARTITIONED BY (day(column))",
            ));
        } else if cursor.take(&["partitioned", "by"]) {
            all.push_str(&format!(" PARTITIONED BY ({})", partitions(cursor)?));
        } else if cursor.take(&["stored", "as"]) {
            stored_as(cursor)?;
        } else if cursor.take(&["stored", "by"]) {
            stored_by(cursor)?;
        } else if cursor.take(&["tblproperties"]) {
            if let Some(properties) = properties(cursor)? {
                all.push_str(&format!(" TBLPROPERTIES ({properties})"));
            }
        } else if cursor.take(&["row", "format", "serde"]) {
            let name = cursor.string()?;
            if name != "org.apache.hadoop.hive.ql.io.orc.OrcSerde" {
                return Err(refused(
                    &format!("ROW FORMAT SERDE '{name}'"),
                    "tables are stored as ORC; `stoa load` reads other files",
                ));
            }
        } else {
            return Err(refused_clause(cursor));
        }
    }
    Ok(all)
}

/// What is said of a clause that is not read.
pub(crate) fn refused_clause(cursor: &Cursor<'_>) -> Error {
    for (words, hint) in [
        (&["row", "format"][..], "tables are stored as ORC; external tables may have other files"),
        (
            &["clustered", "by"],
            "SORTED BY sorts a table in Stoa's SQL, and PARTITIONED BY (bucket(n, column)) makes buckets",
        ),
        (&["skewed", "by"], "leave it out: files are split by size"),
        (&["location"], "tables are below the warehouse; CREATE EXTERNAL TABLE has LOCATION"),
        (&["with", "serdeproperties"], "tables are stored as ORC"),
        (&["on"], "leave it out"),
    ] {
        if cursor.looking_at(words) {
            return refused(&words.join(" ").to_uppercase(), hint);
        }
    }
    cursor.wrong("COMMENT, PARTITIONED BY, STORED AS ORC, TBLPROPERTIES or AS")
}

/// `column type, …` of `PARTITIONED BY (…)`.
///
/// # Errors
/// As [`translate`].
pub(crate) fn partitions(cursor: &mut Cursor<'_>) -> Result<String> {
    let mut all = Vec::new();
    let mut inner = Cursor::new(cursor.parenthesised()?);
    while all.is_empty() || inner.take_token(&Token::Comma) {
        let name = quoted(&inner.name()?);
        // Of a CREATE TABLE … AS, partition columns have no types.
        let is_bare = inner.is_end() || *inner.peek() == Token::Comma;
        let of = if is_bare { None } else { Some(column_type(&inner.data_type()?)?) };
        let mut partition = of.map_or_else(|| name.clone(), |of| format!("{name} {of}"));
        if inner.take(&["comment"]) {
            partition.push_str(&format!(" COMMENT {}", literal(&inner.string()?)));
        }
        all.push(partition);
    }
    inner.expect_end()?;
    Ok(all.join(", "))
}

fn stored_as(cursor: &mut Cursor<'_>) -> Result<()> {
    if cursor.take(&["orc"]) || cursor.take(&["orcfile"]) {
        return Ok(());
    }
    if cursor.looking_at(&["inputformat"]) {
        return Err(refused(
            "STORED AS INPUTFORMAT",
            "tables are stored as ORC: write STORED AS ORC",
        ));
    }
    let name = cursor.name()?.to_uppercase();
    Err(refused(
        &format!("STORED AS {name}"),
        "tables are stored as ORC; `stoa load` reads CSV, JSON, Parquet and ORC files",
    ))
}

fn stored_by(cursor: &mut Cursor<'_>) -> Result<()> {
    let is_iceberg = cursor.take(&["iceberg"])
        || matches!(cursor.peek(), Token::SingleQuotedString(name) if name.ends_with("HiveIcebergStorageHandler"));
    if !is_iceberg {
        return Err(refused(
            "STORED BY",
            "tables are Iceberg tables: write STORED BY ICEBERG, or leave it out",
        ));
    }
    if matches!(cursor.peek(), Token::SingleQuotedString(_)) {
        cursor.at += 1;
    }
    Ok(())
}

/// Properties but those that say of Hive's storage what is so in Stoa anyway.
///
/// # Errors
/// As [`translate`].
pub(crate) fn properties(cursor: &mut Cursor<'_>) -> Result<Option<String>> {
    const NEEDLESS: [&str; 4] =
        ["transactional", "transactional_properties", "external.table.purge", "format-version"];
    let mut all = Vec::new();
    for item in Cursor::new(cursor.parenthesised()?).items() {
        let mut item = Cursor::new(item);
        let key = item.string()?;
        item.expect_token(&Token::Eq)?;
        let value = item.string()?;
        item.expect_end()?;
        if !NEEDLESS.contains(&key.as_str()) {
            all.push(format!("{} = {}", literal(&key), literal(&value)));
        }
    }
    Ok((!all.is_empty()).then(|| all.join(", ")))
}

fn alter(cursor: &mut Cursor<'_>, options: Options) -> Result<String> {
    if cursor.take(&["view"]) {
        return alter_view(cursor, options);
    }
    cursor.expect(&["table"])?;
    let name = cursor.table()?;
    if let Some(change) = partitions::change(cursor)? {
        cursor.expect_end()?;
        return Ok(format!("ALTER TABLE {name} {change}"));
    }
    let actions = match () {
        () if cursor.take(&["rename", "to"]) => format!("RENAME TO {}", cursor.table()?),
        () if cursor.take(&["add", "columns"]) => {
            let mut columns = Vec::new();
            let mut inner = Cursor::new(cursor.parenthesised()?);
            while columns.is_empty() || inner.take_token(&Token::Comma) {
                columns.push(format!("ADD COLUMN {}", column(&mut inner, options)?));
            }
            inner.expect_end()?;
            let _ = cursor.take(&["restrict"]);
            columns.join(", ")
        }
        () if cursor.take(&["change"]) => {
            let _ = cursor.take(&["column"]);
            change_column(cursor)?
        }
        () if cursor.take(&["set", "tblproperties"]) => {
            let given = properties(cursor)?.unwrap_or_default();
            format!("SET TBLPROPERTIES ({given})")
        }
        () if cursor.take(&["unset", "tblproperties"]) => {
            let if_exists = cursor.take(&["if", "exists"]);
            let mut keys = Vec::new();
            for item in Cursor::new(cursor.parenthesised()?).items() {
                keys.push(literal(&Cursor::new(item).string()?));
            }
            let _ = if_exists;
            format!("UNSET TBLPROPERTIES ({})", keys.join(", "))
        }
        () if cursor.take(&["drop", "column"]) => {
            format!("DROP COLUMN {}", quoted(&cursor.name()?))
        }
        () => return Err(refused_change(cursor)),
    };
    cursor.expect_end()?;
    Ok(format!("ALTER TABLE {name} {actions}"))
}

fn refused_change(cursor: &Cursor<'_>) -> Error {
    for (words, hint) in [
        (&["replace", "columns"][..], "use ADD COLUMNS, CHANGE COLUMN and DROP COLUMN"),
        (&["exchange", "partition"], "use INSERT OVERWRITE … SELECT"),
        (&["set", "location"], "tables are below the warehouse"),
        (&["set", "fileformat"], "tables are stored as ORC"),
        (&["set", "serde"], "tables are stored as ORC"),
        (&["set", "serdeproperties"], "tables are stored as ORC"),
        (&["set", "owner"], "SET stoa.dialect=postgres, and ALTER TABLE … OWNER TO"),
        (&["clustered", "by"], "use SORTED BY in Stoa's SQL"),
        (&["concatenate"], "files are compacted by the server"),
        (&["compact"], "files are compacted by the server; COMPACT in Stoa's SQL does it at once"),
        (&["touch"], "leave it out"),
        (&["archive"], "leave it out"),
        (&["unarchive"], "leave it out"),
        (&["execute"], "SET stoa.dialect=postgres, and read docs/sql.md on maintenance"),
        (&["add", "constraint"], "NOT NULL and DEFAULT of columns are supported"),
        (&["drop", "constraint"], "there are no constraints"),
        (&["update", "statistics"], "statistics are kept with the files"),
        (&["skewed"], "leave it out"),
        (&["not"], "leave it out"),
    ] {
        if cursor.looking_at(words) {
            return refused(&format!("ALTER TABLE … {}", words.join(" ").to_uppercase()), hint);
        }
    }
    cursor.wrong("RENAME TO, ADD COLUMNS, CHANGE COLUMN, DROP COLUMN, or SET TBLPROPERTIES")
}

/// `old new type [COMMENT 'text']`.
fn change_column(cursor: &mut Cursor<'_>) -> Result<String> {
    let (old, new) = (cursor.name()?, cursor.name()?);
    let of = column_type(&cursor.data_type()?)?;
    if cursor.looking_at(&["comment"]) {
        return Err(refused("COMMENT in CHANGE COLUMN", "use COMMENT ON COLUMN in Stoa's SQL"));
    }
    if cursor.looking_at(&["first"]) || cursor.looking_at(&["after"]) {
        return Err(refused("FIRST and AFTER", "columns stay in their order"));
    }
    let _ = cursor.take(&["cascade"]) || cursor.take(&["restrict"]);
    let change = format!("ALTER COLUMN {} TYPE {of}", quoted(&new));
    Ok(match old == new {
        true => change,
        false => format!("RENAME COLUMN {} TO {}, {change}", quoted(&old), quoted(&new)),
    })
}

fn alter_view(cursor: &mut Cursor<'_>, options: Options) -> Result<String> {
    let name = cursor.table()?;
    if cursor.take(&["as"]) {
        return Ok(format!(
            "CREATE OR REPLACE VIEW {name} AS {}",
            queries::translated(cursor.rest(), options)?
        ));
    }
    if cursor.take(&["rename", "to"]) {
        let to = cursor.table()?;
        cursor.expect_end()?;
        return Ok(format!("ALTER VIEW {name} RENAME TO {to}"));
    }
    Err(refused("this ALTER VIEW", "ALTER VIEW … AS SELECT and RENAME TO are supported"))
}
