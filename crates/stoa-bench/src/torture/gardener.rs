//! Whoever changes rows and files while others write.

use std::sync::Arc;

use stoa_error::Result;
use tokio::sync::watch;
use tokio_postgres::SimpleQueryMessage;

use super::ledger::{Change, RAISE};
use super::tables::{Kind, TortureTable};
use crate::write::ServerAddress;

/// The rows that a statement says it changed.
fn changed_rows(answers: &[SimpleQueryMessage]) -> u64 {
    let counts = answers.iter().filter_map(|answer| match answer {
        SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
        _ => None,
    });
    counts.sum()
}

/// Sends statements that rewrite files until the server is gone or `stop` says so. A statement that
/// fails may be done or not; the next check finds out.
///
/// # Errors
/// Unavailable where the server does not take the connection.
pub(crate) async fn tend(
    address: ServerAddress,
    tables: Vec<Arc<TortureTable>>,
    mut random: impl FnMut() -> u64,
    stop: watch::Receiver<bool>,
) -> Result<u64> {
    let client = address.postgres().await?;
    let mut done = 0;
    while !*stop.borrow() && !client.is_closed() {
        let choice = random();
        let table = &tables[choice as usize % tables.len()];
        let name = &table.name;
        let change = match choice >> 8 & 7 {
            0 => Some(Change::Delete),
            1 | 2 if table.kind == Kind::Rows => Some(Change::Raise),
            _ => None,
        };
        let number = change.and_then(|change| table.ledger.lock().begin_change(random(), change));
        let statement = match (change, number) {
            (Some(Change::Delete), Some(number)) if table.kind == Kind::Cells => {
                let statement = format!("DELETE * FROM {name} WHERE ROW = '{number}'");
                if address.hql(&statement).await.is_ok() {
                    let mut ledger = table.ledger.lock();
                    let rows = ledger.rows_of(number);
                    ledger.changed(number, rows);
                    done += 1;
                }
                continue;
            }
            (Some(Change::Delete), Some(number)) => {
                format!("DELETE FROM {name} WHERE parcel = {number}")
            }
            (Some(Change::Raise), Some(number)) if choice >> 16 & 1 == 0 => {
                format!("UPDATE {name} SET campaign = campaign + {RAISE} WHERE parcel = {number}")
            }
            (Some(Change::Raise), Some(number)) => format!(
                "MERGE INTO {name} AS t USING (SELECT {number} AS parcel) AS s \
                 ON t.parcel = s.parcel \
                 WHEN MATCHED THEN UPDATE SET campaign = t.campaign + {RAISE}"
            ),
            _ => match choice >> 24 & 3 {
                0 => format!("FLUSH TABLE {name}"),
                1 => format!("COMPACT TABLE {name} FULL"),
                2 => format!("COMPACT TABLE {name}"),
                _ => format!("EXPIRE SNAPSHOTS FROM {name}"),
            },
        };
        let Ok(answers) = client.simple_query(&statement).await else { continue };
        done += 1;
        if let Some(number) = number {
            table.ledger.lock().changed(number, changed_rows(&answers));
        }
    }
    Ok(done)
}
