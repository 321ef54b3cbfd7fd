//! One process: ingest, maintenance and a log that is written when the simulation says so.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use stoa_commitlog::sim::{SimDisk, Stepper, open_stepped_in};
use stoa_env::{Env, Simulation};
use stoa_error::Result;
use stoa_ingest::{FlushLimits, Ingest, IngestOptions, Maintenance, MaintenanceOptions};
use stoa_table::{ExpireOptions, Table, Warehouse, WarehouseOptions};

use crate::common;

pub const TABLE: &str = "t";

/// Work that has not ended after so much simulated time never will.
const STUCK: Duration = Duration::from_secs(20 * 60);

/// Looks at the work for each millisecond that passes.
const LOOKS_PER_MS: u64 = 64;

pub struct Life {
    pub env: Env,
    pub world: Simulation,
    warehouse: Warehouse,
    pub ingest: Ingest,
    maintenance: Maintenance,
    pub table: Table,
    writer: Stepper,
}

impl Life {
    /// Starts a process, which recovers what earlier ones have left.
    pub async fn begin(
        (env, world): &(Env, Simulation),
        directory: &Path,
        disk: &SimDisk,
    ) -> Result<Self> {
        let location = directory.join("warehouse");
        let url = stoa_store::parse_location(location.to_str().unwrap())?;
        let warehouse = Warehouse::open_in(env, &WarehouseOptions::new(url)).await?;
        let ident = common::ident(TABLE);
        let table = match warehouse.table(&ident).await {
            Ok(table) => table,
            Err(_) => warehouse.create_table(&ident, common::spec()).await?,
        };
        let (log, recovery, mut writer) =
            open_stepped_in(env, disk.storage(), common::log_options())?;
        let opening = Ingest::with_log(warehouse.clone(), (log, recovery), options());
        let (ingest, _) = drive(world, Some(&mut writer), opening).await?;
        let maintenance = Maintenance::start(warehouse.clone(), looking_after());
        let (env, world) = (env.clone(), world.clone());
        Ok(Self { env, world, warehouse, ingest, maintenance, table, writer })
    }

    /// Does `work` while the log is written.
    pub async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        drive(&self.world, Some(&mut self.writer), work).await
    }

    /// Waits until a round of maintenance is over, which begins now.
    pub async fn look_after(&mut self) {
        let maintenance = &self.maintenance;
        let rounds = maintenance.status().rounds;
        maintenance.wake();
        let round = async {
            while maintenance.status().rounds == rounds {
                tokio::task::yield_now().await;
            }
        };
        drive(&self.world, Some(&mut self.writer), round).await;
    }

    /// Lets `duration` pass while the storage of the log takes nothing.
    pub async fn stall(&self, duration: Duration) {
        for _ in 0..10 {
            self.world.advance(duration / 10);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Lets everything go on for a little while.
    pub async fn go_on(&mut self, looks: u64) {
        for _ in 0..looks {
            tokio::task::yield_now().await;
            self.writer.step();
        }
    }

    /// Ends the process where it is. Its disk has been told before.
    pub async fn end(self) {
        self.world.end_tasks();
        let Self { warehouse, ingest, maintenance, writer, world, .. } = self;
        drop((ingest, maintenance, writer));
        // What SQLite was told has happened, or not, before the next process starts.
        drive(&world, None, warehouse.catalog().close()).await;
    }
}

/// Polls `work`, and lets the log be written and time pass, until it is done.
async fn drive<T>(
    world: &Simulation,
    mut writer: Option<&mut Stepper>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    let (mut looks, mut passed) = (0_u64, Duration::ZERO);
    loop {
        tokio::select! {
            biased;
            output = &mut work => return output,
            () = tokio::task::yield_now() => {}
        }
        if let Some(writer) = &mut writer {
            writer.step();
        }
        looks += 1;
        // Files and catalog are real, and take their time.
        std::thread::yield_now();
        if looks.is_multiple_of(LOOKS_PER_MS) {
            let tick = Duration::from_millis(1);
            world.advance(tick);
            passed += tick;
            assert!(passed < STUCK, "nothing happens any more");
        }
    }
}

/// Little room, so that appends have to wait for flushes now and then.
fn options() -> IngestOptions {
    IngestOptions {
        fresh_bytes_max: 24 << 10,
        room_wait_max: Duration::from_secs(5),
        flush: FlushLimits { bytes: 8 << 10, rows: 400, age: Duration::from_secs(10) },
        ..IngestOptions::default()
    }
}

fn looking_after() -> MaintenanceOptions {
    let at_once = ExpireOptions {
        age_max: Some(Duration::from_secs(60)),
        retain_last: Some(1),
        age_min: Duration::ZERO,
        ..ExpireOptions::default()
    };
    MaintenanceOptions {
        expire: at_once,
        expire_interval: Duration::from_secs(60),
        orphan_interval: Duration::from_secs(60 * 60),
        // Less than the clock jumps.
        orphan_age: Duration::from_secs(60),
        ..MaintenanceOptions::default()
    }
}
