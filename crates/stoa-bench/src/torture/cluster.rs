//! Several daemons over one catalog, of which one at a time is hurt while all are written to.
//!
//! ```text
//! all up ─► writers and changes at every daemon ─► kill, freeze, end or cut off one ─► stop writing
//!   ▲         ─► what was acknowledged is shown by every daemon ─► logs are taken over
//!   └───────  ─► doubts are settled, and every daemon says the same ◄──────────┘
//! ```
//! The daemons agree by the catalog's database, which must be a new one in PostgreSQL.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use stoa_env::clock::monotonic;
use stoa_env::{task, timer};
use stoa_error::{Error, ErrorKind, Result};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::SimpleQueryMessage;

use super::check::{check, look};
use super::daemon::{Daemon, Place, STORE_ENDPOINT, Warehouse};
use super::gardener::tend;
use super::hurt::{From, Hurt};
use super::random::Random;
use super::run::write;
use super::tables::Tables;
use super::wire::State;
use crate::server_process::ServerProcess;
use crate::write::ServerAddress;

/// Faults after which new tables are written.
const FAULTS_PER_TABLE: u32 = 15;

/// How long the dead may take to be noticed and their logs to be taken over.
const SETTLE_LIMIT: Duration = Duration::from_secs(90);

/// How long a daemon takes to end that reads that it was declared dead.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Time between looks whether they are.
const LOOK_EACH: Duration = Duration::from_millis(100);

/// How long others go on after the fault.
const AFTERMATH: Duration = Duration::from_millis(500);

/// What to do.
#[derive(Clone, Debug)]
pub struct ClusterTortureOptions {
    /// The `stoa` binary.
    pub program: PathBuf,
    /// It is left as it is where something is wrong.
    pub warehouse: Warehouse,
    /// A new database of PostgreSQL.
    pub catalog: String,
    /// How many daemons there are.
    pub daemons: usize,
    /// How often one is hurt.
    pub faults: u32,
    /// Equal seeds make equal choices; what the processor makes of them differs.
    pub seed: u64,
    /// Connections per protocol, table and daemon.
    pub writers: usize,
    /// Most rows of a parcel.
    pub rows_max: i32,
}

/// What happened. Nothing was lost, or there would be an error instead.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClusterTortureResult {
    /// Daemons that were hurt, all told.
    pub faults: u32,
    /// Killed (SIGKILL).
    pub killed: u32,
    /// Ended by themselves at a fail point, or hurt by a made-up error and killed.
    pub failed: u32,
    /// Stopped for a while (SIGSTOP) and woken; those that had been declared dead meanwhile.
    pub frozen: [u32; 2],
    /// Ended in order (SIGTERM).
    pub drained: u32,
    /// Times that daemons were cut off from the catalog, from the store or from each other; daemons that had been declared dead meanwhile.
    pub cut: [u32; 2],
    /// Daemons that were frozen or cut off, answered again, and were declared dead a moment later.
    pub late: u32,
    /// Daemons whose logs had stopped: they ended, and others were started.
    pub stopped: u32,
    /// Parcels that are there in the end.
    pub parcels: u64,
    /// Their rows.
    pub rows: u64,
    /// Parcels in flight that were there afterwards.
    pub in_flight_kept: u64,
    /// Parcels in flight that were not.
    pub in_flight_gone: u64,
    /// Statements that were acknowledged and change rows or files.
    pub statements: u64,
    /// Times that a table was compared with its ledger, at one daemon.
    pub checks: u64,
    /// From a fault until all logs of the dead were in files: median and most, milliseconds.
    pub settle_ms: [u64; 2],
    /// How long it all took.
    pub seconds: f64,
}

/// Runs until so many daemons were hurt as `options` asks for, then checks everything once more.
///
/// # Errors
/// `Corrupt` where rows are lost, doubled or changed; `Unavailable` where a daemon does not start or
/// answer, or a log is not taken over.
pub async fn run_cluster(
    options: &ClusterTortureOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<ClusterTortureResult> {
    let begin = monotonic();
    let mut torture = Torture {
        options,
        random: Random::of(options.seed),
        daemons: Vec::new(),
        tables: Tables::default(),
        result: ClusterTortureResult::default(),
        settled_ms: Vec::new(),
    };
    while torture.result.faults < options.faults {
        let hurt = Hurt::pick(&mut torture.random, options.warehouse.is_store());
        let fault = torture.result.faults;
        torture.round(&hurt).await.map_err(|error| {
            error.at(format!("fault {fault}, seed {}, whose daemon {hurt}", options.seed))
        })?;
        if torture.result.faults.is_multiple_of(20) {
            let ClusterTortureResult { faults, checks, statements, .. } = torture.result;
            progress(&format!("{faults} faults, {statements} statements, {checks} comparisons"));
        }
    }
    torture.last_look().await?;
    torture.settled_ms.sort_unstable();
    let median = torture.settled_ms.get(torture.settled_ms.len() / 2);
    let most = torture.settled_ms.last();
    torture.result.settle_ms = [median, most].map(|ms| ms.copied().unwrap_or(0));
    torture.result.seconds = begin.elapsed().as_secs_f64();
    Ok(torture.result)
}

struct Torture<'a> {
    options: &'a ClusterTortureOptions,
    random: Random,
    daemons: Vec<Daemon>,
    tables: Tables,
    result: ClusterTortureResult,
    settled_ms: Vec<u64>,
}

impl Torture<'_> {
    async fn round(&mut self, hurt: &Hurt) -> Result<()> {
        self.without_stopped().await?;
        while self.daemons.len() < self.options.daemons.max(1) {
            let daemon = self.start("").await?;
            self.daemons.push(daemon);
        }
        if let Hurt::Failed(death) = hurt {
            // Armed in a new one: its fail points are counted from its start.
            let last = self.daemons.pop().ok_or_else(no_daemon)?;
            last.process.stop().await?;
            match self.start(&death.failpoints()).await {
                Ok(armed) => self.daemons.push(armed),
                // It died while it joined.
                Err(_) => {
                    self.result.faults += 1;
                    return self.died(monotonic()).await;
                }
            }
        }
        self.make_tables().await?;
        let stop = watch::Sender::new(false);
        let clients = self.clients(&stop);
        // The last one is the armed one, if any is.
        let nth = match hurt {
            Hurt::Failed(_) => self.daemons.len() - 1,
            _ => self.random.below(self.daemons.len() as u64) as usize,
        };
        if let Hurt::Cut { from, state, after, lasting } = hurt {
            timer::sleep(*after).await;
            self.cut(nth, *from, *state);
            timer::sleep(*lasting).await;
            self.cut(nth, *from, State::Whole);
            self.without_the_dead().await?;
        } else {
            let daemon = self.daemons.remove(nth);
            let survivor = self.hurt(daemon, hurt).await?;
            self.daemons.extend(survivor);
        }
        let began = monotonic();
        timer::sleep(AFTERMATH).await;
        stop.send_replace(true);
        for client in clients {
            let done = client.await.map_err(|e| Error::internal("a client failed").with_source(e));
            self.result.statements += done?;
        }
        self.result.faults += 1;
        let may_die_late = matches!(hurt, Hurt::Frozen { .. } | Hurt::Cut { .. });
        loop {
            match self.died(began).await {
                Err(error) if may_die_late && error.kind() == ErrorKind::Unavailable => {
                    if !self.without_ended().await? {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// Waits for the end of daemons whose logs have stopped, as where the store was out of reach for too long: they end
    /// when it is back.
    async fn without_stopped(&mut self) -> Result<()> {
        let before = self.daemons.len();
        for mut daemon in std::mem::take(&mut self.daemons) {
            match has_stopped(&daemon).await {
                Ok(false) => self.daemons.push(daemon),
                // It may be ending already.
                Ok(true) | Err(_) => {
                    let ending = timer::timeout(SETTLE_LIMIT, daemon.process.wait()).await;
                    let late =
                        "a daemon whose log has stopped does not end, or one does not answer";
                    let status = ending.map_err(|_| Error::unavailable(late))?;
                    is_declared_dead(status?)?;
                }
            }
        }
        self.result.stopped += (before - self.daemons.len()) as u32;
        match self.daemons.is_empty() {
            true => self.daemons.push(self.start("").await?),
            false if self.daemons.len() < before => self.settle(monotonic()).await?,
            false => {}
        }
        Ok(())
    }

    /// Leaves out a daemon that was declared dead when it answered again already: one that could not be reached for about
    /// as long as its lease lasts. True if there is one.
    async fn without_ended(&mut self) -> Result<bool> {
        let began = monotonic();
        let before = self.daemons.len();
        while self.daemons.len() == before && began.elapsed() < END_LIMIT {
            for mut daemon in std::mem::take(&mut self.daemons) {
                match timer::timeout(LOOK_EACH, daemon.process.wait()).await {
                    Ok(status) => self.result.late += u32::from(is_declared_dead(status?)?),
                    Err(_) => self.daemons.push(daemon),
                }
            }
        }
        Ok(self.daemons.len() < before)
    }

    /// Cuts what is between daemons and others, or mends it.
    fn cut(&self, nth: usize, from: From, state: State) {
        let is_meant = |(number, daemon)| {
            let all = matches!(from, From::CatalogOfAll | From::PeersOfAll | From::StoreOfAll);
            (all || number == nth).then_some(daemon)
        };
        for daemon in self.daemons.iter().enumerate().filter_map(is_meant) {
            match from {
                From::Catalog | From::CatalogOfAll => daemon.set_catalog(state),
                From::Peers | From::PeersOfAll => daemon.set_from_peers(state),
                From::Store | From::StoreOfAll => daemon.set_store(state),
            }
        }
    }

    /// Waits until each daemon goes on after a cut, or has ended since it was declared dead, and all agree who lives:
    /// one may be declared dead by those that did not reach it when it is reached again.
    async fn without_the_dead(&mut self) -> Result<()> {
        self.result.cut[0] += 1;
        let began = monotonic();
        loop {
            for mut daemon in std::mem::take(&mut self.daemons) {
                match has_ended(&mut daemon.process).await? {
                    true => self.result.cut[1] += 1,
                    false => self.daemons.push(daemon),
                }
            }
            // One that does not answer is ending.
            if self.is_settled().await.unwrap_or(false) {
                return Ok(());
            }
            if began.elapsed() > SETTLE_LIMIT {
                return Err(Error::unavailable("the daemons do not agree which of them live"));
            }
            timer::sleep(LOOK_EACH).await;
        }
    }

    /// Does it; gives the daemon back if it lives.
    async fn hurt(&mut self, mut daemon: Daemon, hurt: &Hurt) -> Result<Option<Daemon>> {
        match hurt {
            Hurt::Killed(after) => {
                timer::sleep(*after).await;
                daemon.process.kill().await?;
                self.result.killed += 1;
                Ok(None)
            }
            Hurt::Failed(death) => {
                if timer::timeout(death.kill_after(), daemon.process.wait()).await.is_err() {
                    daemon.process.kill().await?;
                }
                self.result.failed += 1;
                Ok(None)
            }
            Hurt::Frozen { after, frozen } => {
                timer::sleep(*after).await;
                daemon.process.freeze()?;
                timer::sleep(*frozen).await;
                daemon.process.thaw()?;
                self.result.frozen[0] += 1;
                let is_dead = has_ended(&mut daemon.process).await?;
                self.result.frozen[1] += u32::from(is_dead);
                Ok((!is_dead).then_some(daemon))
            }
            Hurt::Cut { .. } => Ok(Some(daemon)),
            Hurt::Drained(after) => {
                timer::sleep(*after).await;
                let status = daemon.process.stop().await?;
                self.result.drained += 1;
                match status.success() {
                    true => Ok(None),
                    false => Err(Error::corrupt(format!("a daemon that was ended left {status}"))),
                }
            }
        }
    }

    /// One daemon was hurt, and nobody writes: all that was acknowledged is there, at once and after the logs of
    /// the dead were taken over.
    async fn died(&mut self, began: std::time::Instant) -> Result<()> {
        let addresses: Vec<_> =
            self.daemons.iter().map(|daemon| daemon.process.address()).collect();
        for address in &addresses {
            let client = address.postgres().await?;
            for table in &self.tables.active {
                look(&client, table).await?;
                self.result.checks += 1;
            }
        }
        self.settle(began).await?;
        for address in &addresses {
            let client = address.postgres().await?;
            for table in &self.tables.active {
                let checked = check(&client, table).await?;
                self.result.checks += 1;
                self.result.in_flight_kept += checked.kept;
                self.result.in_flight_gone += checked.gone;
            }
        }
        Ok(())
    }

    /// Waits until all logs of the dead are taken over and retired, as every daemon sees it: until then what nobody
    /// acknowledged may still appear.
    async fn settle(&mut self, began: std::time::Instant) -> Result<()> {
        while !self.is_settled().await? {
            if began.elapsed() > SETTLE_LIMIT {
                return Err(Error::unavailable("the logs of the dead were not taken over"));
            }
            timer::sleep(LOOK_EACH).await;
        }
        self.settled_ms.push(began.elapsed().as_millis() as u64);
        Ok(())
    }

    /// Whether every daemon sees a log of each daemon and no other, and all daemons that there are.
    async fn is_settled(&self) -> Result<bool> {
        const LOGS: &str = "SELECT logs_orphaned, logs, (SELECT count(*) FROM system.daemons \
                            WHERE state <> 'dead') FROM system.cluster";
        let alive = self.daemons.len().to_string();
        for daemon in &self.daemons {
            let client = daemon.process.address().postgres().await?;
            let rows = client.simple_query(LOGS).await.map_err(|e| {
                Error::unavailable("a daemon does not tell of its cluster").with_source(e)
            })?;
            let is_settled = rows.iter().any(|row| match row {
                SimpleQueryMessage::Row(row) => {
                    row.get(0) == Some("0")
                        && row.get(1) == Some(alive.as_str())
                        && row.get(2) == Some(alive.as_str())
                }
                _ => false,
            });
            if !is_settled {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn start(&self, failpoints: &str) -> Result<Daemon> {
        let ClusterTortureOptions { program, warehouse, catalog, .. } = self.options;
        Daemon::start(Place { program, warehouse, catalog }, failpoints).await
    }

    async fn make_tables(&mut self) -> Result<()> {
        let age = self.result.faults - self.tables.made_at;
        if self.tables.active.is_empty() || age >= FAULTS_PER_TABLE {
            let first = self.daemons.first().ok_or_else(no_daemon)?;
            self.tables.renew(&first.process.address()).await?;
            self.tables.made_at = self.result.faults;
        }
        Ok(())
    }

    /// Writers on all protocols at every daemon, and at each one who changes what is there.
    fn clients(&mut self, stop: &watch::Sender<bool>) -> Vec<JoinHandle<u64>> {
        let mut clients = Vec::new();
        let addresses: Vec<_> =
            self.daemons.iter().map(|daemon| daemon.process.address()).collect();
        for address in &addresses {
            for table in &self.tables.active {
                for path in table.paths().repeat(self.options.writers) {
                    let (address, table) = (address.clone(), Arc::clone(table));
                    let (mut random, stop) = (self.random.fork(), stop.subscribe());
                    let rows_max = self.options.rows_max.max(1) as u64;
                    clients.push(task::spawn(async move {
                        let rows = move || (1 + random.next() % rows_max) as i32;
                        // The daemon is gone: what was not acknowledged is in doubt.
                        let _ = write(path, &address, &table, rows, stop).await;
                        0
                    }));
                }
            }
            clients.push(self.gardener(address.clone(), stop));
        }
        clients
    }

    fn gardener(&mut self, address: ServerAddress, stop: &watch::Sender<bool>) -> JoinHandle<u64> {
        let mut random = self.random.fork();
        let gardener =
            tend(address, self.tables.active.clone(), move || random.next(), stop.subscribe());
        task::spawn(async move { gardener.await.unwrap_or(0) })
    }

    /// Looks at all tables, and once more with all rows in files.
    async fn last_look(&mut self) -> Result<()> {
        self.without_stopped().await?;
        let first = self.daemons.first().ok_or_else(no_daemon)?;
        let client = first.process.address().postgres().await?;
        for table in self.tables.all().cloned().collect::<Vec<_>>() {
            check(&client, &table).await?;
            let flushed = client.batch_execute(&format!("FLUSH TABLE {}", table.name)).await;
            flushed.map_err(|e| {
                Error::unavailable(format!("table {} cannot be flushed", table.name)).with_source(e)
            })?;
            check(&client, &table).await?;
            self.result.checks += 2;
            let (parcels, rows) = table.ledger.lock().kept();
            self.result.parcels += parcels;
            self.result.rows += rows;
        }
        for daemon in self.daemons.drain(..) {
            daemon.process.stop().await?;
        }
        let tables: Vec<_> = self.tables.all().cloned().collect();
        for table in tables {
            self.check_files(&table.name).await?;
        }
        Ok(())
    }

    /// All data files of all snapshots are there, and as they were written (`stoa table check --data`).
    async fn check_files(&self, table: &str) -> Result<()> {
        let ClusterTortureOptions { program, warehouse, catalog, .. } = self.options;
        let mut command = Command::new(program);
        command.args(["table", "check", table, "--data"]);
        command.args(["--warehouse", &warehouse.place(), "--catalog", catalog]);
        if let Warehouse::Store { endpoint, .. } = warehouse {
            command.env(STORE_ENDPOINT, endpoint);
        }
        let checked = command.kill_on_drop(true).output().await;
        let checked =
            checked.map_err(|e| Error::unavailable("cannot start this program").with_source(e))?;
        match checked.status.success() {
            true => Ok(()),
            false => Err(Error::corrupt(format!("table {table} is damaged: {}", checked.status))
                .with_detail(String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()))),
        }
    }
}

async fn has_stopped(daemon: &Daemon) -> Result<bool> {
    let client = daemon.process.address().postgres().await?;
    let rows = client
        .simple_query("SELECT is_stopped FROM system.log")
        .await
        .map_err(|e| Error::unavailable("a daemon does not tell of its log").with_source(e))?;
    Ok(rows.iter().any(|row| match row {
        SimpleQueryMessage::Row(row) => row.get(0) == Some("t"),
        _ => false,
    }))
}

/// Whether a daemon that was frozen or cut off has been declared dead, reads that, and ends; else it goes on.
async fn has_ended(daemon: &mut ServerProcess) -> Result<bool> {
    let began = monotonic();
    while began.elapsed() < SETTLE_LIMIT {
        if let Ok(status) = timer::timeout(LOOK_EACH, daemon.wait()).await {
            return is_declared_dead(status?);
        }
        let Ok(client) = daemon.address().postgres().await else { continue };
        let exact = client.simple_query("SELECT exact FROM system.cluster").await;
        let is_exact = |row: &SimpleQueryMessage| match row {
            SimpleQueryMessage::Row(row) => row.get(0) == Some("t"),
            _ => false,
        };
        if exact.is_ok_and(|rows| rows.iter().any(is_exact)) {
            return Ok(false);
        }
    }
    Err(Error::unavailable("a daemon that was hurt neither goes on nor ends"))
}

/// Whether a daemon that has ended did so as one does that others have declared dead.
///
/// # Errors
/// `Corrupt`: it ended otherwise.
fn is_declared_dead(status: ExitStatus) -> Result<bool> {
    match status.code() {
        Some(1) => Ok(true),
        _ => Err(Error::corrupt(format!("a daemon that nobody ended has ended: {status}"))),
    }
}

fn no_daemon() -> Error {
    Error::internal("there is no daemon")
}
