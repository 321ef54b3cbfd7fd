//! Reads a table as it is and compares it with its ledger.

use stoa_error::{Error, Result};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::ledger::{Checked, Found};
use super::tables::TortureTable;

/// Compares all rows of a table that nobody writes to.
///
/// # Errors
/// `Corrupt`, naming table and parcel, where they are not as they must be; `Unavailable` where the
/// server does not answer.
pub(crate) async fn check(client: &Client, table: &TortureTable) -> Result<Checked> {
    let found = read(client, &table.name).await?;
    table.ledger.lock().settle(&found).map_err(|error| error.at(format!("table {}", table.name)))
}

async fn read(client: &Client, table: &str) -> Result<Vec<Found>> {
    let query = format!(
        "SELECT parcel, count(*), sum(place), sum(cost), sum(campaign) FROM {table} GROUP BY parcel"
    );
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
            Some(Found {
                number: number(0)?,
                rows: number(1)?,
                places: number(2)?,
                cost: number(3)?,
                campaign: number(4)?,
            })
        })();
        found.push(parcel.ok_or_else(|| Error::corrupt(format!("table {table}: sums are NULL")))?);
    }
    Ok(found)
}
