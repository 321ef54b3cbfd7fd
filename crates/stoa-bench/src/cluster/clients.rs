//! Clients, each of which asks a random daemon, and another one where that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::RwLock;
use stoa_env::clock::monotonic;
use stoa_env::{task, timer};
use stoa_error::{Error, Result};
use tokio::task::JoinHandle;

use super::ClusterOptions;
use crate::ad_report::{AdReport, DailySums};
use crate::check::check;
use crate::driver::{Connection, Limit, Mode, RunOptions};
use crate::mix::Sequence;
use crate::report::{Report, ReportPicker};
use crate::write::ServerAddress;

/// Longer ones count as this: a minute.
const LATENCY_US_MAX: u64 = 60_000_000;

/// A daemon that does not answer is tried again after this time.
const RECONNECT_EACH: Duration = Duration::from_millis(500);

/// How often a report is asked before it counts as lost.
const TRIES_MAX: usize = 20;

/// What all of them have seen.
pub(super) struct Seen {
    /// Answered reports, by the second in which they were, from the start or [`Clients::forget`] on.
    pub(super) seconds: Vec<Histogram<u64>>,
    pub(super) checked: u64,
    pub(super) repeated: u64,
    pub(super) lost: u64,
    pub(super) first_error: Option<String>,
}

impl Seen {
    pub(super) fn latency_us(&self) -> Result<Histogram<u64>> {
        let mut all = histogram()?;
        self.seconds.iter().try_for_each(|second| all.add(second)).map_err(unusable)?;
        Ok(all)
    }
}

/// Clients that ask until they are stopped.
pub(super) struct Clients {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<Result<Seen>>>,
}

struct Shared {
    options: RunOptions,
    daemons: RwLock<Arc<Vec<ServerAddress>>>,
    /// How often the daemons have changed.
    version: AtomicU64,
    begin: RwLock<Instant>,
    stops: AtomicBool,
}

impl Clients {
    pub(super) fn start(
        options: &ClusterOptions,
        table_name: &str,
        table: Arc<AdReport>,
        daemons: Vec<ServerAddress>,
    ) -> Self {
        let shared = Arc::new(Shared {
            options: RunOptions {
                host: String::new(),
                pg_port: 0,
                table: table_name.to_owned(),
                mode: Mode::Prepared,
                clients: options.clients,
                limit: Limit::Reports(0),
                warm_up: Duration::ZERO,
                seed: options.spec.seed,
                check_every: options.check_every,
                settings: vec![],
                beside: vec![],
            },
            daemons: RwLock::new(Arc::new(daemons)),
            version: AtomicU64::new(0),
            begin: RwLock::new(monotonic()),
            stops: AtomicBool::new(false),
        });
        let client = |number: usize| {
            let seed = options.spec.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
            let client = Client {
                shared: Arc::clone(&shared),
                picker: ReportPicker::new(Arc::clone(&table), seed),
                random: Sequence::new(seed ^ 0x9e37_79b9),
                version: 0,
                places: Vec::new(),
                table: Arc::clone(&table),
            };
            task::spawn(client.run())
        };
        let tasks = (0..options.clients.max(1)).map(client).collect();
        Self { shared, tasks }
    }

    /// Other daemons from now on.
    pub(super) fn meet(&self, daemons: Vec<ServerAddress>) {
        *self.shared.daemons.write() = Arc::new(daemons);
        self.shared.version.fetch_add(1, Ordering::Release);
    }

    /// The seconds begin now; answers that came before are forgotten.
    pub(super) fn forget(&self) {
        *self.shared.begin.write() = monotonic();
    }

    /// # Errors
    /// `Corrupt`: an answer was wrong.
    pub(super) async fn stop(self) -> Result<Seen> {
        self.shared.stops.store(true, Ordering::Relaxed);
        let mut all: Option<Seen> = None;
        for task in self.tasks {
            let seen =
                task.await.map_err(|e| Error::internal("a client ended").with_source(e))??;
            match &mut all {
                None => all = Some(seen),
                Some(all) => add(all, seen)?,
            }
        }
        all.ok_or_else(|| Error::internal("there is no client"))
    }
}

fn add(all: &mut Seen, other: Seen) -> Result<()> {
    for (number, second) in other.seconds.into_iter().enumerate() {
        match all.seconds.get_mut(number) {
            Some(known) => known.add(second).map_err(unusable)?,
            None => all.seconds.push(second),
        }
    }
    all.checked += other.checked;
    all.repeated += other.repeated;
    all.lost += other.lost;
    all.first_error = all.first_error.take().or(other.first_error);
    Ok(())
}

struct Client {
    shared: Arc<Shared>,
    picker: ReportPicker,
    random: Sequence,
    version: u64,
    places: Vec<Place>,
    table: Arc<AdReport>,
}

/// A daemon, as a client knows it.
struct Place {
    address: ServerAddress,
    connection: Option<Connection>,
    /// When it is tried again.
    not_before: Instant,
}

impl Client {
    async fn run(mut self) -> Result<Seen> {
        let mut seen =
            Seen { seconds: vec![], checked: 0, repeated: 0, lost: 0, first_error: None };
        self.meet();
        let (mut begin, mut asked) = (*self.shared.begin.read(), 0_u64);
        while !self.shared.stops.load(Ordering::Relaxed) {
            if self.version != self.shared.version.load(Ordering::Acquire) {
                self.meet();
            }
            let report = self.picker.pick();
            let from = monotonic();
            let answer = self.answer(&report, &mut seen).await;
            let took = from.elapsed();
            let now_begin = *self.shared.begin.read();
            if begin != now_begin {
                begin = now_begin;
                seen.seconds.clear();
            }
            let Some(answer) = answer else {
                seen.lost += 1;
                continue;
            };
            let second = begin.elapsed().as_secs() as usize;
            while seen.seconds.len() <= second {
                seen.seconds.push(histogram()?);
            }
            if let Some(second) = seen.seconds.get_mut(second) {
                second.saturating_record(took.as_micros() as u64);
            }
            asked += 1;
            let check_every = self.shared.options.check_every;
            if check_every > 0 && asked.is_multiple_of(check_every) {
                check(&self.table, &report, &answer)?;
                seen.checked += 1;
            }
        }
        Ok(seen)
    }

    fn meet(&mut self) {
        self.version = self.shared.version.load(Ordering::Acquire);
        let addresses = Arc::clone(&self.shared.daemons.read());
        let mut known = std::mem::take(&mut self.places);
        self.places = addresses
            .iter()
            .map(|address| {
                match known.iter().position(|place| place.address.pg_port == address.pg_port) {
                    Some(at) => known.swap_remove(at),
                    None => Place {
                        address: address.clone(),
                        connection: None,
                        not_before: monotonic(),
                    },
                }
            })
            .collect();
    }

    /// Asks one daemon, and others until one answers.
    async fn answer(&mut self, report: &Report, seen: &mut Seen) -> Option<Vec<DailySums>> {
        let count = self.places.len();
        let first = self.random.below(count as u64) as usize;
        let mut has_failed = false;
        for number in 0..TRIES_MAX {
            let place = self.places.get_mut((first + number) % count)?;
            match place.ask(&self.shared.options, report).await {
                Some(Ok(answer)) => {
                    seen.repeated += u64::from(has_failed);
                    return Some(answer);
                }
                Some(Err(error)) => {
                    has_failed = true;
                    seen.first_error.get_or_insert_with(|| format!("{error:?}"));
                }
                // A client's pool leaves out a daemon that it cannot connect to.
                None if number >= count => timer::sleep(RECONNECT_EACH / 4).await,
                None => {}
            }
        }
        None
    }
}

impl Place {
    /// `None` while there is no connection, and none is to be had.
    async fn ask(
        &mut self,
        options: &RunOptions,
        report: &Report,
    ) -> Option<Result<Vec<DailySums>>> {
        if self.connection.as_ref().is_none_or(Connection::is_closed) {
            self.connection = None;
            if monotonic() < self.not_before {
                return None;
            }
            self.not_before = monotonic() + RECONNECT_EACH;
            let (host, pg_port) = (self.address.host.clone(), self.address.pg_port);
            let options = RunOptions { host, pg_port, ..options.clone() };
            self.connection = Connection::open(&options).await.ok();
        }
        Some(self.connection.as_ref()?.ask(report).await)
    }
}

fn histogram() -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).map_err(unusable)
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::internal("a histogram cannot be used").with_source(error)
}
