//! Lives and deaths of a server, one after the other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use stoa_env::clock::monotonic;
use stoa_env::task;
use stoa_error::{Error, Result};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::check::check;
use super::death::Death;
use super::gardener::tend;
use super::ledger::Checked;
use super::random::Random;
use super::tables::{Tables, TortureTable};
use crate::server_process::{START_LIMIT, ServerProcess};
use crate::write::{ServerAddress, WritePath, Writer};

/// The variable that arms a server's fail points.
pub(crate) const FAILPOINTS: &str = "STOA_FAILPOINTS";

/// Lives after which new tables are written.
const LIVES_PER_TABLE: u32 = 25;

/// Lives after which retired tables are looked at, too.
const LIVES_PER_LONG_CHECK: u32 = 50;

/// What to do.
#[derive(Clone, Debug)]
pub struct TortureOptions {
    /// The `stoa` binary.
    pub program: PathBuf,
    /// An empty directory, or one that does not exist; it is left as it is where something is wrong.
    pub warehouse: PathBuf,
    /// How often to kill.
    pub kills: u32,
    /// Equal seeds make equal choices; what the processor makes of them differs.
    pub seed: u64,
    /// Connections per protocol and table.
    pub writers: usize,
    /// Most rows of a parcel.
    pub rows_max: i32,
}

/// What happened. Nothing was lost, or there would be an error instead.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TortureResult {
    /// Servers that ended, all told.
    pub deaths: u32,
    /// Of them, killed while they started.
    pub killed_starting: u32,
    /// Killed while they served.
    pub killed_serving: u32,
    /// Ended by themselves, by fail point.
    pub died_at: BTreeMap<String, u32>,
    /// Killed after a made-up error, by fail point.
    pub faults_at: BTreeMap<String, u32>,
    /// Parcels that are there in the end.
    pub parcels: u64,
    /// Their rows.
    pub rows: u64,
    /// Parcels in flight that were there after a restart.
    pub in_flight_kept: u64,
    /// Parcels in flight that were not.
    pub in_flight_gone: u64,
    /// Statements of DELETE, UPDATE, MERGE, FLUSH, COMPACT and EXPIRE that were acknowledged.
    pub statements: u64,
    /// Times that a table was compared with its ledger.
    pub checks: u64,
    /// From the start of the process until it listened: median and most, milliseconds.
    pub start_ms: [u64; 2],
    /// How long it all took.
    pub seconds: f64,
}

/// Runs until so many servers have ended as `options` asks for, then checks everything once more.
///
/// # Errors
/// `Corrupt` where rows are lost, doubled or changed; `Unavailable` where a server does not start
/// or does not answer.
pub async fn run(
    options: &TortureOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<TortureResult> {
    let begin = monotonic();
    let mut torture = Torture {
        options,
        random: Random::of(options.seed),
        tables: Tables::default(),
        result: TortureResult::default(),
        starts_ms: Vec::new(),
    };
    while torture.result.deaths < options.kills {
        let life = torture.result.deaths;
        let death = Death::pick(torture.random.next());
        torture.life(&death).await.map_err(|error| {
            error.at(format!("server {life}, seed {}, which {death}", options.seed))
        })?;
        if (life + 1).is_multiple_of(LIVES_PER_LONG_CHECK) {
            progress(&torture.sums());
        }
    }
    torture.last_life().await?;
    torture.starts_ms.sort_unstable();
    let median = torture.starts_ms.get(torture.starts_ms.len() / 2);
    let most = torture.starts_ms.last();
    torture.result.start_ms = [median, most].map(|ms| ms.copied().unwrap_or(0));
    torture.result.seconds = begin.elapsed().as_secs_f64();
    Ok(torture.result)
}

struct Torture<'a> {
    options: &'a TortureOptions,
    random: Random,
    tables: Tables,
    result: TortureResult,
    starts_ms: Vec<u64>,
}

impl Torture<'_> {
    /// Starts a server, looks at what the last one left, writes, and sees the server die.
    async fn life(&mut self, death: &Death) -> Result<()> {
        if let Death::Starting(after) = death {
            return match self.start_within(death, *after).await? {
                Some(server) => self.end(server, death).await,
                None => {
                    self.result.deaths += 1;
                    self.result.killed_starting += 1;
                    Ok(())
                }
            };
        }
        let begin = monotonic();
        let server = match self.start(death).await {
            // Points are passed while the log is replayed, too.
            Err(_) if matches!(death, Death::Point(..)) => return self.died(death),
            server => server?,
        };
        self.starts_ms.push(begin.elapsed().as_millis() as u64);
        match self.check(&server.address()).await {
            Err(error) if is_lost_connection(&error) && matches!(death, Death::Point(..)) => {
                server.kill().await?;
                return self.died(death);
            }
            checked => checked?,
        }
        let stop = watch::Sender::new(false);
        let clients = self.clients(&server.address(), &stop);
        self.end(server, death).await?;
        stop.send_replace(true);
        for client in clients {
            let done =
                client.await.map_err(|e| Error::internal("a client failed").with_source(e))?;
            self.result.statements += done;
        }
        Ok(())
    }

    async fn start(&self, death: &Death) -> Result<ServerProcess> {
        let started = self.start_within(death, START_LIMIT).await?;
        started.ok_or_else(|| Error::unavailable("the server did not listen within a minute"))
    }

    async fn start_within(&self, death: &Death, limit: Duration) -> Result<Option<ServerProcess>> {
        let warehouse = self.options.warehouse.display().to_string();
        let arguments = ["--warehouse", &warehouse, "--log-level", "off"];
        let variables = [(FAILPOINTS, death.failpoints())];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        ServerProcess::start_within(&self.options.program, &arguments, &variables, limit).await
    }

    /// Compares the tables that were written with their ledgers, at times all tables, and makes new
    /// ones where it is time for that.
    async fn check(&mut self, address: &ServerAddress) -> Result<()> {
        let client = address.postgres().await?;
        let long = self.result.deaths.is_multiple_of(LIVES_PER_LONG_CHECK);
        let tables: Vec<_> = match long {
            true => self.tables.all().cloned().collect(),
            false => self.tables.active.clone(),
        };
        for table in tables {
            self.checked(check(&client, &table).await?);
        }
        let age = self.result.deaths - self.tables.made_at;
        if self.tables.active.is_empty() || age >= LIVES_PER_TABLE {
            self.tables.renew(address).await?;
            self.tables.made_at = self.result.deaths;
        }
        Ok(())
    }

    fn checked(&mut self, checked: Checked) {
        self.result.checks += 1;
        self.result.in_flight_kept += checked.kept;
        self.result.in_flight_gone += checked.gone;
    }

    /// Writers on all protocols, and one who changes what is there. Each gives the number of its
    /// statements.
    fn clients(
        &mut self,
        address: &ServerAddress,
        stop: &watch::Sender<bool>,
    ) -> Vec<JoinHandle<u64>> {
        let mut clients = Vec::new();
        for table in &self.tables.active {
            for path in table.paths().repeat(self.options.writers) {
                let (address, table, stop) = (address.clone(), table.clone(), stop.subscribe());
                let mut random = self.random.fork();
                let rows_max = self.options.rows_max.max(1) as u64;
                clients.push(task::spawn(async move {
                    let rows = move || (1 + random.next() % rows_max) as i32;
                    // The server is gone: what was not acknowledged is in doubt.
                    let _ = write(path, &address, &table, rows, stop).await;
                    0
                }));
            }
        }
        let mut random = self.random.fork();
        let (address, tables) = (address.clone(), self.tables.active.clone());
        let gardener = tend(address, tables, move || random.next(), stop.subscribe());
        clients.push(task::spawn(async move { gardener.await.unwrap_or(0) }));
        clients
    }

    /// Waits for the server's end, or brings it about.
    async fn end(&mut self, mut server: ServerProcess, death: &Death) -> Result<()> {
        let ended = stoa_env::timer::timeout(death.kill_after(), server.wait()).await;
        if ended.is_ok() {
            return match death {
                Death::Point(..) => self.died(death),
                _ => Err(Error::internal("the server ended without being told to")),
            };
        }
        server.kill().await?;
        self.result.deaths += 1;
        match death {
            Death::Starting(_) => self.result.killed_starting += 1,
            Death::Serving(_) | Death::Point(..) => self.result.killed_serving += 1,
            Death::Fault(point, ..) => {
                *self.result.faults_at.entry((*point).to_owned()).or_default() += 1;
            }
        }
        Ok(())
    }

    fn died(&mut self, death: &Death) -> Result<()> {
        self.result.deaths += 1;
        if let Death::Point(point, _) = death {
            *self.result.died_at.entry((*point).to_owned()).or_default() += 1;
        }
        Ok(())
    }

    /// Looks at all tables twice: as they are found, and with all rows in files.
    async fn last_life(&mut self) -> Result<()> {
        let server = self.start(&Death::Serving(Duration::ZERO)).await?;
        let client = server.address().postgres().await?;
        for table in self.tables.all().cloned().collect::<Vec<_>>() {
            self.checked(check(&client, &table).await?);
            let flushed = client.batch_execute(&format!("FLUSH TABLE {}", table.name)).await;
            flushed.map_err(|e| {
                Error::unavailable(format!("table {} cannot be flushed", table.name)).with_source(e)
            })?;
            self.checked(check(&client, &table).await?);
            let (parcels, rows) = table.ledger.lock().kept();
            self.result.parcels += parcels;
            self.result.rows += rows;
        }
        server.stop().await.map(drop)
    }

    fn sums(&self) -> String {
        let died: u32 = self.result.died_at.values().sum();
        format!(
            "{} servers ended, {died} of them at fail points; {} comparisons, nothing lost",
            self.result.deaths, self.result.checks
        )
    }
}

/// Adds parcels until the server is gone or `stop` says so.
pub(crate) async fn write(
    path: WritePath,
    address: &ServerAddress,
    table: &TortureTable,
    mut rows: impl FnMut() -> i32,
    stop: watch::Receiver<bool>,
) -> Result<()> {
    let mut writer = Writer::connect(path, address, &table.name).await?;
    while !*stop.borrow() {
        let parcel = table.ledger.lock().begin(rows());
        let payload = writer.payload(parcel)?;
        writer.send(&payload).await?;
        table.ledger.lock().acknowledged(parcel.number);
    }
    Ok(())
}

fn is_lost_connection(error: &Error) -> bool {
    error.kind() == stoa_error::ErrorKind::Unavailable
}
