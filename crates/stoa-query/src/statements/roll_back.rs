//! `ALTER TABLE … ROLLBACK TO`: the table holds again what it held at an earlier version.
//!
//! In: a table that the caller owns, and which version. Out: a notice of what came of it. Rows of the commit log come
//! into files first, on all daemons, and none while the table is rolled back: every row that was acknowledged before is
//! undone, and is in the version that was the latest, which can be rolled back to; rows acknowledged later stay.
//! Not here: how it is done (`stoa-table`).

use stoa_error::Result;
use stoa_sql::RollBackTarget;
use stoa_table::{Table, TableVersion};

use crate::session::Session;
use crate::tables::external;

/// Rolls the table back.
///
/// # Errors
/// No such version (42704), a time that is none (22007), tables of cells and external ones (42809), and `Conflict`.
pub(super) async fn run(
    session: &Session,
    table: &Table,
    target: &RollBackTarget,
) -> Result<String> {
    external::refuse_rows(table)?;
    let version = version_of(session, target)?;
    // What does not exist flushes nothing.
    table.at_version(&version)?;
    let hold = match session.data.ingest() {
        Some(ingest) => Some(ingest.hold_flush(table).await?),
        None => None,
    };
    let latest = hold.as_ref().map_or(table, |hold| hold.table());
    let done = latest.roll_back(&version).await?;
    let (before, now) = (snapshot_of(latest), snapshot_of(&done));
    Ok(match before == now {
        true => format!("{}: snapshot {now} is the current one", table.ident()),
        false => format!(
            "{}: {} rows became {}; snapshot {before} has the rows as they were before",
            table.ident(),
            count(latest),
            count(&done),
        ),
    })
}

fn version_of(session: &Session, target: &RollBackTarget) -> Result<TableVersion> {
    Ok(match target {
        RollBackTarget::Snapshot(id) => TableVersion::Snapshot(*id),
        RollBackTarget::Named(name) => TableVersion::Named(name.clone()),
        RollBackTarget::Time(time) => TableVersion::At(session.micros_of(time)?),
    })
}

fn snapshot_of(table: &Table) -> String {
    table.current_snapshot().map_or_else(|| "none".to_owned(), |snapshot| snapshot.id.to_string())
}

/// Its rows, where the metadata tells.
fn count(table: &Table) -> String {
    table.row_count().map_or_else(|| "?".to_owned(), |rows| rows.to_string())
}
