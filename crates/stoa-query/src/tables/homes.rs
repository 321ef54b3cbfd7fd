//! Which daemon of the cluster has which part of a table in memory: reports on it are answered there.
//!
//! ```text
//! report ─► all in memory here? ─► answer
//!             └no─► its table is small, or it reads many parts? ─► read, answer
//!                     └no─► the part's home ─► that is this daemon? ─► read, answer
//!                                                └no─► asked ─► answer
//!                                                        └ none soon enough ─► read, answer; the sooner one counts
//! ```
//!
//! A home is about speed only: every daemon can answer every report, and does so where another one fails.
//!
//! **Invariant:** an answer of another daemon is of a snapshot that it took after it was asked, so it shows all that was
//! acknowledged before; who asks has checked the rights.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::future::{Either, select};
use parking_lot::{Mutex, RwLock};
use stoa_catalog::TableIdent;
use stoa_cluster::hot::{HotBuckets, HotEvent, HotOptions, choose};
use stoa_cluster::placement::{Bucket, Placement};
use stoa_cluster::{DaemonId, Monotonic, TableId};
use stoa_env::{clock, timer};
use stoa_error::{Error, Result};
use stoa_ingest::TableSnapshot;
use stoa_member::{Member, ServiceKind};
use stoa_report::{Answer, Memory, Missing, Outcome, PARTS, Report, Reports};
use stoa_table::Table;
use uuid::Uuid;

/// After this long without an answer of the home, the report is answered here as well.
const HEDGE_AFTER: Duration = Duration::from_millis(300);

/// How long a daemon that did not answer, or not soon, is not asked again.
const AVOIDED_FOR: Duration = Duration::from_secs(2);

/// How long a home may take altogether.
const LIMIT: Duration = Duration::from_secs(60);

/// How long homes are used before the members are looked at again, though their epoch is the same.
const PLACED_FOR: Duration = Duration::from_secs(5);

/// Tables whose homes are remembered.
const PLACED_MAX: usize = 1024;

/// What was done for and by other daemons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HomeCounts {
    /// Reports that others answered for this daemon.
    pub(crate) forwarded: u64,
    /// Reports that were answered here, since another did not, or not soon.
    pub(crate) hedged: u64,
    /// Reports that this daemon answered for others.
    pub(crate) for_others: u64,
}

/// The homes of tables' parts, and the way to them.
pub(crate) struct Homes {
    member: Member,
    /// Smaller tables are for each daemon's own memory.
    bytes_min: u64,
    origin: Instant,
    placed: Mutex<HashMap<Uuid, Placed>>,
    hot: Mutex<HotBuckets>,
    busy: RwLock<HashMap<DaemonId, Arc<Busy>>>,
    asked: AtomicU64,
    forwarded: AtomicU64,
    hedged: AtomicU64,
    for_others: AtomicU64,
}

#[derive(Clone)]
struct Placed {
    epoch: u64,
    until: Monotonic,
    placement: Arc<Placement>,
}

/// What a daemon has to do for this one.
#[derive(Default)]
struct Busy {
    in_flight: AtomicU64,
    /// Nanoseconds since the origin until which it is not asked.
    avoided_until: AtomicU64,
}

/// Counts a report for as long as it is with a daemon.
struct InFlight(Arc<Busy>);

impl InFlight {
    fn begin(busy: Arc<Busy>) -> Self {
        busy.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(busy)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Homes {
    /// Reports on tables of at least `bytes_min` are for their homes.
    pub(crate) fn new(member: Member, bytes_min: u64) -> Self {
        Self {
            member,
            bytes_min,
            origin: clock::monotonic(),
            placed: Mutex::default(),
            hot: Mutex::new(HotBuckets::new(HotOptions::default())),
            busy: RwLock::default(),
            asked: AtomicU64::new(0),
            forwarded: AtomicU64::new(0),
            hedged: AtomicU64::new(0),
            for_others: AtomicU64::new(0),
        }
    }

    pub(crate) fn counts(&self) -> HomeCounts {
        HomeCounts {
            forwarded: self.forwarded.load(Ordering::Relaxed),
            hedged: self.hedged.load(Ordering::Relaxed),
            for_others: self.for_others.load(Ordering::Relaxed),
        }
    }

    /// Counts a report that was answered for another daemon.
    pub(crate) fn count_for_others(&self) {
        self.for_others.fetch_add(1, Ordering::Relaxed);
    }

    /// Answers a report here or at its home; `None` where the planner must.
    ///
    /// # Errors
    /// Those of [`Reports::run`] on this daemon.
    pub(crate) async fn answer(
        &self,
        reports: &Reports,
        snapshot: &TableSnapshot,
        report: &Report,
        memory: &dyn Memory,
    ) -> Result<Option<Answer>> {
        let (table, fresh) = (&snapshot.table, &snapshot.fresh);
        match reports.run_reading(table, fresh, report, memory, Missing::Leave).await? {
            Outcome::Done(answer) => return Ok(Some(answer)),
            Outcome::Beyond => return Ok(None),
            Outcome::Cold => {}
        }
        // Boxed: most reports end above, and are not to make room for this.
        Box::pin(async {
            let here = reports.run_within(table, fresh, report, memory);
            match self.home(reports, table, report).await? {
                Some(daemon) => self.ask(daemon, table, report, here).await,
                None => here.await,
            }
        })
        .await
    }

    /// Another daemon that is to answer a report.
    async fn home(
        &self,
        reports: &Reports,
        table: &Table,
        report: &Report,
    ) -> Result<Option<DaemonId>> {
        if self.member.is_alone() || reports.table_bytes(table).await? < self.bytes_min {
            return Ok(None);
        }
        let Some(first_sort_column) = table.first_sort_column() else { return Ok(None) };
        let parts = reports.parts(table, report, first_sort_column).await?;
        Ok(parts.and_then(|parts| self.home_of(table.uuid(), &parts)))
    }

    fn home_of(&self, table: Uuid, parts: &RangeInclusive<u32>) -> Option<DaemonId> {
        let placement = self.placement(table);
        let (first, me) = (*parts.start(), self.member.id());
        let home = placement.homes(first).first()?;
        // The rows of an account may lie on both sides of a border. Of a report over more, one daemon must have all
        // parts, else none is better than this one.
        let is_wide = parts.end() - first > 1;
        if is_wide && !parts.clone().all(|part| placement.homes(part).first() == Some(home)) {
            return None;
        }
        let now = self.now();
        let id = TableId(table.into_bytes());
        let count = {
            let mut hot = self.hot.lock();
            hot.on(HotEvent::Requests { table: id, bucket: first, count: 1 }, now);
            hot.homes(id, first)
        };
        let homes = placement.homes(first);
        let homes = homes.get(..count).unwrap_or(homes);
        if homes.contains(&me) {
            return None;
        }
        let request = self.asked.fetch_add(1, Ordering::Relaxed);
        choose(homes, request, |daemon| {
            let busy = self.busy(daemon);
            let is_avoided =
                now.0.as_nanos() < u128::from(busy.avoided_until.load(Ordering::Relaxed));
            let is_open = !is_avoided && self.member.reaches(daemon);
            is_open.then(|| busy.in_flight.load(Ordering::Relaxed))
        })
    }

    fn placement(&self, table: Uuid) -> Arc<Placement> {
        let (now, epoch) = (self.now(), self.member.epoch());
        let known = self.placed.lock().get(&table).cloned();
        if let Some(known) = known.filter(|known| known.epoch == epoch && now < known.until) {
            return known.placement;
        }
        let candidates = self.member.home_candidates();
        let bucket = |number| Bucket { number, since: 0, bytes: 1 };
        let buckets: Vec<_> = (0..PARTS).map(bucket).collect();
        let id = TableId(table.into_bytes());
        let placement = Arc::new(Placement::new(id, &buckets, &candidates.daemons));
        let (epoch, until) = (candidates.epoch, now + PLACED_FOR);
        let mut placed = self.placed.lock();
        if placed.len() >= PLACED_MAX {
            placed.clear();
        }
        placed.insert(table, Placed { epoch, until, placement: Arc::clone(&placement) });
        placement
    }

    /// Asks a home; if it does not answer soon, the report is answered `here` as well, and the first answer counts.
    async fn ask(
        &self,
        home: DaemonId,
        table: &Table,
        report: &Report,
        here: impl Future<Output = Result<Option<Answer>>> + Send,
    ) -> Result<Option<Answer>> {
        let Some(body) = encode(table, report) else { return here.await };
        let busy = self.busy(home);
        let in_flight = InFlight::begin(Arc::clone(&busy));
        let call = async {
            let answer = self.member.ask(home, ServiceKind::Report, body, LIMIT).await;
            drop(in_flight);
            answer.and_then(|answer| decode(answer, report))
        };
        let failed = |error: &Error| {
            tracing::debug!(daemon = %home, %error, "a report was not answered at its home");
            self.avoid(&busy);
        };
        let mut call = std::pin::pin!(call);
        match timer::timeout(HEDGE_AFTER, &mut call).await {
            Ok(Ok(answer)) => {
                self.forwarded.fetch_add(1, Ordering::Relaxed);
                return Ok(answer);
            }
            Ok(Err(error)) => {
                failed(&error);
                self.hedged.fetch_add(1, Ordering::Relaxed);
                return here.await;
            }
            Err(_) => {}
        }
        // It may be reading from a slow store, or be frozen: nobody knows.
        self.avoid(&busy);
        self.hedged.fetch_add(1, Ordering::Relaxed);
        match select(call, std::pin::pin!(here)).await {
            Either::Left((Ok(answer), _)) => Ok(answer),
            Either::Left((Err(error), here)) => {
                failed(&error);
                here.await
            }
            Either::Right((answer, _)) => answer,
        }
    }

    fn avoid(&self, busy: &Busy) {
        let until = self.now() + AVOIDED_FOR;
        let until = u64::try_from(until.0.as_nanos()).unwrap_or(u64::MAX);
        busy.avoided_until.store(until, Ordering::Relaxed);
    }

    fn busy(&self, daemon: DaemonId) -> Arc<Busy> {
        if let Some(busy) = self.busy.read().get(&daemon) {
            return Arc::clone(busy);
        }
        Arc::clone(self.busy.write().entry(daemon).or_default())
    }

    fn now(&self) -> Monotonic {
        Monotonic(clock::monotonic().duration_since(self.origin))
    }
}

/// The table's UUID and schema, its name, then the report.
fn encode(table: &Table, report: &Report) -> Option<Bytes> {
    let report = report.encode()?;
    let ident = table.ident();
    let texts = ident.namespace.len() + ident.name.len();
    let mut out = BytesMut::with_capacity(report.len() + texts + 32);
    out.put_slice(table.uuid().as_bytes());
    out.put_i32_le(table.schema_id());
    for text in [&ident.namespace, &ident.name] {
        out.put_u32_le(u32::try_from(text.len()).ok()?);
        out.put_slice(text.as_bytes());
    }
    out.put_slice(&report);
    Some(out.freeze())
}

/// What an answer begins with.
const ANSWERED: u8 = 1;
const FOR_THE_PLANNER: u8 = 0;

/// What another daemon is answered: `None` where the planner must.
///
/// # Errors
/// `Internal`: Arrow cannot write it.
pub(crate) fn encode_answer(answer: Option<&Answer>) -> Result<Bytes> {
    let Some(answer) = answer else { return Ok(Bytes::from_static(&[FOR_THE_PLANNER])) };
    let mut out = BytesMut::new();
    out.put_u8(ANSWERED);
    answer.encode(&mut out)?;
    Ok(out.freeze())
}

fn decode(mut bytes: Bytes, report: &Report) -> Result<Option<Answer>> {
    match bytes.try_get_u8() {
        Ok(ANSWERED) => Answer::decode(bytes, &report.schema).map(Some),
        Ok(FOR_THE_PLANNER) => Ok(None),
        _ => Err(unreadable()),
    }
}

/// Which table a report of another daemon is for.
pub(crate) struct Asked {
    pub(crate) uuid: Uuid,
    pub(crate) schema_id: i32,
    pub(crate) ident: TableIdent,
}

impl Asked {
    /// Reads what is in front of the report.
    pub(crate) fn read(body: &mut Bytes) -> Option<Self> {
        let mut uuid = [0; 16];
        body.try_copy_to_slice(&mut uuid).ok()?;
        let schema_id = body.try_get_i32_le().ok()?;
        let mut text = || {
            let length = body.try_get_u32_le().ok()? as usize;
            let text = (length <= body.len()).then(|| body.split_to(length))?;
            String::from_utf8(text.to_vec()).ok()
        };
        let ident = TableIdent::new(text()?, text()?);
        Some(Self { uuid: Uuid::from_bytes(uuid), schema_id, ident })
    }
}

pub(crate) fn unreadable() -> Error {
    Error::invalid("a report of another daemon cannot be read").with_sqlstate("08P01")
}
