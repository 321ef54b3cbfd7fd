//! Reads a table as it is and compares it with its ledger.

use stoa_error::{Error, Result};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::ledger::{Checked, ParcelRows};
use super::tables::{Kind, TortureTable};
use crate::write::Parcel;

/// Compares all rows of a table that nobody writes to.
///
/// # Errors
/// `Corrupt`, naming table and parcel, where they are not as they must be; `Unavailable` where the
/// server does not answer.
pub(crate) async fn check(client: &Client, table: &TortureTable) -> Result<Checked> {
    let found = read(client, table).await?;
    table.ledger.lock().settle(&found).map_err(|error| error.at(format!("table {}", table.name)))
}

/// Compares what was acknowledged with the rows of a table that nobody writes to, and settles no doubt.
///
/// # Errors
/// As [`check`].
pub(crate) async fn look(client: &Client, table: &TortureTable) -> Result<()> {
    let found = read(client, table).await?;
    table.ledger.lock().look(&found).map_err(|error| error.at(format!("table {}", table.name)))
}

async fn read(client: &Client, of: &TortureTable) -> Result<Vec<ParcelRows>> {
    let table = &of.name;
    let query = match of.kind {
        Kind::Rows => format!(
            "SELECT parcel, count(*), sum(place), sum(cost), sum(campaign) \
             FROM {table} GROUP BY parcel"
        ),
        Kind::Cells => format!(
            "SELECT row, count(*), sum(qualifier::bigint), sum(value::bigint) \
             FROM \"{table}$cells\" GROUP BY row"
        ),
    };
    let messages = client.simple_query(&query).await.map_err(|e| {
        Error::unavailable(format!("table {table} cannot be read"))
            .with_detail(e.as_db_error().map_or_else(|| e.to_string(), ToString::to_string))
            .with_source(e)
    })?;
    let mut found = Vec::new();
    for message in messages {
        let SimpleQueryMessage::Row(row) = message else { continue };
        let number = |column| row.get(column).and_then(|text| text.parse().ok());
        let parcel = (|| {
            Some(ParcelRows {
                number: number(0)?,
                rows: number(1)?,
                places: number(2)?,
                cost: number(3)?,
                campaign: match of.kind {
                    Kind::Rows => number(4)?,
                    // Cells have none, and are never updated.
                    Kind::Cells => parcel_of(number(0)?, number(1)?).campaign(),
                },
            })
        })();
        found.push(parcel.ok_or_else(|| Error::corrupt(format!("table {table}: sums are NULL")))?);
    }
    Ok(found)
}

fn parcel_of(number: i64, rows: i64) -> Parcel {
    Parcel { number, rows: rows.try_into().unwrap_or(i32::MAX) }
}
