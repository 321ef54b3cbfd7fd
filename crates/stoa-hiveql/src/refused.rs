//! Statements and clauses of Hive's that Stoa has not, by name, with what to use instead.

use sqlparser::tokenizer::TokenWithSpan;
use stoa_error::{Error, Result};

use crate::cursor::Cursor;

/// First words of statements, what they are called, and what to use instead.
const STATEMENTS: &[(&[&str], &str)] = &[
    (
        &["export", "table"],
        "copy the rows with INSERT OVERWRITE, or read the Iceberg table with another engine",
    ),
    (&["import"], "use `stoa load`"),
    (&["create", "temporary", "external"], "use CREATE EXTERNAL TABLE"),
    (&["create", "function"], "use the functions of docs/hiveql.md"),
    (&["create", "temporary", "function"], "use the functions of docs/hiveql.md"),
    (&["create", "temporary", "macro"], "write the expression out, or use a view"),
    (&["create", "materialized"], "use CREATE VIEW; Stoa reuses results until the data changes"),
    (&["create", "index"], "sort the table with SORTED BY"),
    (&["create", "scheduled"], "use a scheduler such as cron"),
    (&["create", "connector"], "use `stoa load`"),
    (&["create", "remote"], "use `stoa load`"),
    (&["alter", "materialized"], "use CREATE VIEW"),
    (&["alter", "index"], "sort the table with SORTED BY"),
    (&["alter", "database"], "databases have a name only"),
    (&["alter", "schema"], "databases have a name only"),
    (&["alter", "scheduled"], "use a scheduler such as cron"),
    (&["drop", "function"], "there are no functions of users"),
    (&["drop", "temporary"], "there are no functions of users"),
    (&["drop", "materialized"], "use DROP VIEW"),
    (&["drop", "index"], "there are no indexes"),
    (&["drop", "scheduled"], "use a scheduler such as cron"),
    (&["reload"], "there are no functions of users"),
    (&["add"], "ADD FILE adds a file for scripts"),
    (&["delete", "jar"], "there are no jars of sessions"),
    (&["delete", "archive"], "there are no archives of sessions"),
    (&["list", "jar"], "there are no jars of sessions"),
    (&["list", "archive"], "there are no archives of sessions"),
    (&["dfs"], "use a client of the store"),
    (&["compile"], "use the functions of docs/hiveql.md"),
    (&["lock"], "readers and writers do not wait for each other"),
    (&["unlock"], "readers and writers do not wait for each other"),
    (&["abort"], "cancel the statement in its client, or with `KILL` in Stoa's SQL"),
    (&["kill"], "cancel the statement in its client, or with `KILL` in Stoa's SQL"),
    (&["repl"], "back up the catalog and the store: see docs/operations.md"),
    (&["prepare"], "drivers fill in parameters themselves"),
    (&["execute"], "drivers fill in parameters themselves"),
    (&["llap"], "the console shows the caches; PURGE CACHE empties them"),
    (&["show", "locks"], "readers and writers do not wait for each other"),
    (&["show", "transactions"], "read system.queries"),
    (&["show", "compactions"], "the console shows the maintenance of tables"),
    (&["show", "conf"], "SET name shows a setting"),
    (&["show", "indexes"], "there are no indexes"),
    (&["show", "index"], "there are no indexes"),
    (&["show", "materialized"], "there are no materialized views"),
    (&["show", "table", "extended"], "use DESCRIBE FORMATTED"),
    (&["show", "connectors"], "there are no connectors"),
];

/// Refuses a statement that begins so.
///
/// # Errors
/// 0A000, with what to use instead.
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let cursor = Cursor::new(tokens);
    let found = STATEMENTS.iter().find(|(words, _)| cursor.looking_at(words));
    if let Some((words, hint)) = found {
        let name = words.join(" ").to_uppercase();
        return Err(Error::unsupported(format!("{name} is not supported")).with_hint(*hint));
    }
    for at in 0..tokens.len() {
        let here = Cursor { tokens, at };
        if here.looking_at(&["for", "system_time"]) || here.looking_at(&["for", "system_version"]) {
            return Err(Error::unsupported(
                "FOR SYSTEM_TIME and FOR SYSTEM_VERSION are not supported",
            )
            .with_hint("SET stoa.dialect=postgres, and read docs/sql.md on time travel"));
        }
    }
    Ok(())
}
