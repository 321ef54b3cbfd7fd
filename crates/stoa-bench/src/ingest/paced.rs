//! Writers at a constant rate, to see what they cost others.

use std::time::{Duration, Instant};

use stoa_env::clock::monotonic;
use stoa_env::task;
use stoa_error::{Error, Result};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::write::{Parcel, ServerAddress, WritePath, Writer, columns_sql};

/// Rows that are acknowledged together.
const ROWS: i32 = 1000;

/// Connections.
const WRITERS: i64 = 2;

/// `COPY` into a table of its own, so many rows per second, until stopped.
pub struct PacedWriters {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<Result<u64>>>,
    began: Instant,
}

impl PacedWriters {
    /// Makes the table `table` anew and begins to write.
    ///
    /// # Errors
    /// Unavailable where the server does not take it.
    pub async fn start(address: &ServerAddress, table: &str, rows_per_second: u64) -> Result<Self> {
        let client = address.postgres().await?;
        let columns = columns_sql();
        let statement = format!(
            "DROP TABLE IF EXISTS {table} PURGE; CREATE TABLE {table} ({columns}) ORDER BY (account)"
        );
        client.batch_execute(&statement).await.map_err(|e| {
            Error::unavailable(format!("table {table} cannot be made")).with_source(e)
        })?;
        let stop = watch::Sender::new(false);
        let appends = rows_per_second as f64 / f64::from(ROWS) / WRITERS as f64;
        let pause = Duration::from_secs_f64(1.0 / appends.max(0.001));
        let mut tasks = Vec::new();
        for number in 0..WRITERS {
            let writer = Writer::connect(WritePath::Copy, address, table).await?;
            tasks.push(task::spawn(write(writer, number, pause, stop.subscribe())));
        }
        Ok(Self { stop, tasks, began: monotonic() })
    }

    /// Ends the writers; rows per second that they wrote.
    ///
    /// # Errors
    /// Those of the writers.
    pub async fn stop(self) -> Result<f64> {
        self.stop.send_replace(true);
        let mut rows = 0;
        for task in self.tasks {
            rows += task.await.map_err(|e| Error::internal("a writer failed").with_source(e))??;
        }
        Ok(rows as f64 / self.began.elapsed().as_secs_f64())
    }
}

async fn write(
    mut writer: Writer,
    number: i64,
    pause: Duration,
    stop: watch::Receiver<bool>,
) -> Result<u64> {
    let payload = writer.payload(Parcel { number, rows: ROWS })?;
    let mut due = stoa_env::timer::interval(pause);
    let mut rows = 0;
    while !*stop.borrow() {
        due.tick().await;
        writer.send(&payload).await?;
        rows += ROWS as u64;
    }
    Ok(rows)
}
