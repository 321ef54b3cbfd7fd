//! `UPDATE … FROM` and `DELETE … USING`, which are written as the MERGE that means the same.
//!
//! ```text
//! UPDATE t SET c = s.c FROM s WHERE t.id = s.id   MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c = s.c
//! DELETE FROM t USING s WHERE t.id = s.id         MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE
//! ```
//! Where several rows of `s` match one of `t`, PostgreSQL takes any of them; MERGE refuses to choose (21000).

use datafusion_sql::sqlparser::ast::{FromTable, Statement, TableWithJoins, UpdateTableFromKind};
use stoa_error::{Error, Result};

use crate::reread;

/// Writes such a statement as a MERGE; leaves all others as they are.
///
/// # Errors
/// 0A000 for what MERGE cannot have: more than one table.
pub fn write_as_merge(statement: &mut Statement) -> Result<()> {
    let is_meant = match &*statement {
        Statement::Update(update) => update.from.is_some(),
        Statement::Delete(delete) => delete.using.is_some(),
        _ => false,
    };
    if !is_meant {
        return Ok(());
    }
    reread::bracket_signs(statement);
    let merge = match statement {
        Statement::Update(update) => {
            let Some(UpdateTableFromKind::AfterSet(from)) = &update.from else { return Ok(()) };
            let is_plain = update.order_by.is_empty()
                && update.limit.is_none()
                && update.table.joins.is_empty();
            let source = only_source(from, is_plain, "UPDATE … FROM")?;
            let assignments: Vec<String> =
                update.assignments.iter().map(ToString::to_string).collect();
            let then = format!("UPDATE SET {}", assignments.join(", "));
            merge_of(&update.table, source, update.selection.as_ref(), &then)
        }
        Statement::Delete(delete) => {
            let Some(using) = &delete.using else { return Ok(()) };
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            let [table] = from.as_slice() else { return Ok(()) };
            let is_plain = delete.order_by.is_empty()
                && delete.limit.is_none()
                && delete.tables.is_empty()
                && table.joins.is_empty();
            let source = only_source(using, is_plain, "DELETE … USING")?;
            merge_of(table, source, delete.selection.as_ref(), "DELETE")
        }
        _ => return Ok(()),
    };
    *statement = reread::statement(&merge)
        .map_err(|error| Error::internal("a MERGE is not read").with_source(error))?;
    Ok(())
}

fn only_source<'a>(
    from: &'a [TableWithJoins],
    is_plain: bool,
    what: &str,
) -> Result<&'a TableWithJoins> {
    match from {
        [source] if is_plain && source.joins.is_empty() => Ok(source),
        _ => Err(Error::unsupported(format!("{what} with more than one table"))
            .with_hint("join the tables in a subquery: FROM (SELECT …) AS name WHERE …")),
    }
}

fn merge_of(
    table: &TableWithJoins,
    source: &TableWithJoins,
    condition: Option<&datafusion_sql::sqlparser::ast::Expr>,
    then: &str,
) -> String {
    let condition = condition.map_or_else(|| "true".to_owned(), ToString::to_string);
    format!("MERGE INTO {table} USING {source} ON ({condition}) WHEN MATCHED THEN {then}")
}
