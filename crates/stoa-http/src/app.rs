//! What all requests share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stoa_env::clock;
use stoa_error::{Error, Result};
use stoa_query::Engine;
use tokio::sync::{mpsc, watch};

use crate::alerts::Alerts;
use crate::guard::Guard;
use crate::kept::{Results, Sessions};
use crate::options::{HttpOptions, Readiness};
use crate::query_log::QueryLog;
use crate::streams::Streams;

/// Threads that have not taken up work for so many microseconds do not answer.
const UNANSWERED_US: u64 = 3_000_000;

const TIDY_EVERY: Duration = Duration::from_secs(1);

/// State of one server.
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    pub(crate) guard: Guard,
    pub(crate) alerts: Arc<Alerts>,
    pub(crate) flights: Flights,
    pub(crate) requests: Requests,
    pub(crate) streams: Streams,
    pub(crate) query_log: Arc<QueryLog>,
    pub(crate) results: Arc<Results>,
    pub(crate) sessions: Sessions,
    pub(crate) started_unix_ms: i64,
    pub(crate) started: Instant,
    readiness: Readiness,
}

impl App {
    pub(crate) fn new(engine: Arc<Engine>, guard: Guard, options: &HttpOptions) -> Self {
        let kept = &options.kept;
        // Where queries spill, large results go, too.
        let directory = engine.options().spill_dir.clone().unwrap_or_else(std::env::temp_dir);
        Self {
            query_log: Arc::new(QueryLog::new(Arc::clone(&engine), options.query_log.clone())),
            results: Arc::new(Results::new(kept.clone(), directory)),
            sessions: Sessions::new(
                Duration::from_millis(kept.session_idle_ms_max),
                kept.sessions_per_role_max,
            ),
            alerts: Arc::new(Alerts::new(Arc::clone(&engine), options.alerts.clone())),
            engine,
            guard,
            flights: Flights::new(),
            requests: Requests::default(),
            streams: Streams::new(),
            started_unix_ms: clock::unix_ms(),
            started: clock::monotonic(),
            readiness: options.readiness.clone(),
        }
    }

    /// Why statements are not taken, or not all of them. `/ready`, metrics and console all ask this.
    pub(crate) fn not_ready(&self) -> Option<String> {
        if self.flights.is_closed() || self.engine.is_closing() {
            return Some("the server is shutting down".to_owned());
        }
        if !self.readiness.is_ready() {
            return Some("the server is starting".to_owned());
        }
        if let Some(stopped) = self.engine.ingest().and_then(|ingest| ingest.log_stopped()) {
            return Some(format!(
                "the commit log has stopped, small writes are refused: {stopped}"
            ));
        }
        if self.engine.member().is_some_and(|member| !member.is_ready()) {
            return Some(
                "the daemon does not know yet all that others of the cluster did".to_owned(),
            );
        }
        self.threads_that_do_not_answer()
    }

    /// Lets go, from time to time, of what was kept for clients that did not come back.
    pub(crate) async fn tidy(self: Arc<Self>) {
        let mut ticks = stoa_env::timer::interval(TIDY_EVERY);
        loop {
            ticks.tick().await;
            self.results.tidy();
            self.sessions.tidy();
        }
    }

    /// Which threads have not taken up work for a while, where there are any.
    fn threads_that_do_not_answer(&self) -> Option<String> {
        let stalls = [
            ("executors do not", self.engine.executor_stalls()),
            ("threads that plan do not", self.engine.planner_stalls()),
            ("threads that serve connections do not", self.engine.io_stalls()),
        ];
        let (which, stall) =
            stalls.into_iter().find(|(_, stall)| stall.waiting_us > UNANSWERED_US)?;
        let seconds = stall.waiting_us / 1_000_000;
        Some(format!("the {which} answer: no work was taken up for {seconds} seconds"))
    }
}

/// The SQL requests under way, so that a shutdown can wait for them.
pub(crate) struct Flights {
    /// Each flight holds a clone; gone once closed.
    tower: Mutex<Option<mpsc::Sender<()>>>,
    landed: Mutex<Option<mpsc::Receiver<()>>>,
    closed: watch::Sender<bool>,
}

/// One SQL request under way, until dropped.
#[derive(Debug)]
pub(crate) struct Flight {
    _held: mpsc::Sender<()>,
}

impl Flights {
    fn new() -> Self {
        let (tower, landed) = mpsc::channel(1);
        Self {
            tower: Mutex::new(Some(tower)),
            landed: Mutex::new(Some(landed)),
            closed: watch::Sender::new(false),
        }
    }

    /// # Errors
    /// Unavailable (57P01): the server is shutting down.
    pub(crate) fn start(&self) -> Result<Flight> {
        let held = self.tower.lock().clone();
        held.map(|held| Flight { _held: held })
            .ok_or_else(|| Error::unavailable("the server is shutting down").with_sqlstate("57P01"))
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Completes once [`Flights::close`] was called.
    pub(crate) async fn closed(&self) {
        // An error would mean that the sender is gone, but it is in `self`.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Lets no more flights start, and waits until the last one is down.
    pub(crate) async fn close(&self) {
        drop(self.tower.lock().take());
        self.closed.send_replace(true);
        let landed = self.landed.lock().take();
        if let Some(mut landed) = landed {
            // Nothing is ever sent: this ends when the last sender is dropped.
            landed.recv().await;
        }
    }
}

/// Counts of requests by route and status.
#[derive(Default)]
pub(crate) struct Requests {
    counts: Mutex<BTreeMap<(&'static str, u16), u64>>,
    running: AtomicUsize,
}

impl Requests {
    pub(crate) fn begin(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, route: &'static str, status: u16) {
        self.running.fetch_sub(1, Ordering::Relaxed);
        *self.counts.lock().entry((route, status)).or_default() += 1;
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn counts(&self) -> BTreeMap<(&'static str, u16), u64> {
        self.counts.lock().clone()
    }
}
