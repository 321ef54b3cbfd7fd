//! Which daemon of the cluster has which part of a table in memory: reports on it are answered there.
//!
//! ```text
//! report ─► all in memory here? ─► answer      (not asked where it just was not)
//!             └no─► its table is small, or it has no condition on the first sort column? ─► read, answer
//!                     ├─► its parts have several homes? ─► each is asked for its parts; all are put together
//!                     └─► the part's home ─► that is this daemon? ─► read, answer
//!                                                └no─► asked ─► answer
//!                                                        └ none soon enough ─► read, answer; the sooner one counts
//! ```
//!
//! A home is about speed only: every daemon can answer every report, and does so where another one fails.
//!
//! **Invariants:** a whole answer of another daemon is of a snapshot that it took after it was asked, so it shows all that
//! was acknowledged before. Answers on parts are all of the version that this daemon has looked up, of data files only; this
//! daemon adds the rows that are in none. Who asks has checked the rights.

mod cold;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::future::{Either, join_all, select};
use parking_lot::{Mutex, RwLock};
use stoa_catalog::TableIdent;
use stoa_cluster::hot::{HotBuckets, HotEvent, HotOptions, Room, choose};
use stoa_cluster::placement::{Bucket, Placement};
use stoa_cluster::{DaemonId, Monotonic, TableId};
use stoa_env::{clock, timer};
use stoa_error::{Error, ErrorKind, Result};
use stoa_ingest::{FreshRows, TableSnapshot};
use stoa_member::{Member, ServiceKind};
use stoa_report::{Answer, Memory, Missing, Outcome, PARTS, PartSet, Parts, Report, Reports};
use stoa_table::Table;
use uuid::Uuid;

use self::cold::{Cold, Needs};

/// After this long without an answer of the home, the report is answered here as well.
const HEDGE_AFTER: Duration = Duration::from_millis(300);

/// How long a daemon that did not answer, or not soon, is not asked again.
const AVOIDED_FOR: Duration = Duration::from_secs(2);

/// How long a home may take altogether.
const LIMIT: Duration = Duration::from_secs(60);

/// How long homes may take for their parts of a report. What is not there then is read here.
const PARTS_LIMIT: Duration = Duration::from_secs(1);

/// Other daemons that answer a report together with this one, at most.
const SPLIT_MAX: usize = 8;

/// How long homes are used before the members are looked at again, though their epoch is the same.
const PLACED_FOR: Duration = Duration::from_secs(5);

/// How often it is asked whether memory has room.
const ROOM_EVERY: Duration = Duration::from_secs(1);

/// Tables whose homes are remembered.
const PLACED_MAX: usize = 1024;

/// What was done for and by other daemons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HomeCounts {
    /// Reports that others answered for this daemon.
    pub(crate) forwarded: u64,
    /// Reports that were answered here, since another did not, or not soon.
    pub(crate) hedged: u64,
    /// Reports that this daemon answered for others, or parts of them.
    pub(crate) for_others: u64,
    /// Reports that this daemon answered together with others.
    pub(crate) in_parts: u64,
}

/// The homes of tables' parts, and the way to them.
pub(crate) struct Homes {
    member: Member,
    /// Smaller tables are for each daemon's own memory.
    bytes_min: u64,
    origin: Instant,
    placed: Mutex<HashMap<Uuid, Placed>>,
    hot: Mutex<HotBuckets>,
    cold: Cold,
    /// Nanoseconds since the origin at which memory is to be asked whether it has room.
    room_asked_at: AtomicU64,
    busy: RwLock<HashMap<DaemonId, Arc<Busy>>>,
    asked: AtomicU64,
    forwarded: AtomicU64,
    hedged: AtomicU64,
    for_others: AtomicU64,
    in_parts: AtomicU64,
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

/// What a report on a table that is shared needs.
struct Asks {
    first_sort_column: i32,
    parts: Parts,
    /// Bytes of one part in files, about.
    part_bytes: u64,
    needs: Needs,
}

/// Where a report is answered.
enum Route {
    Here,
    To(DaemonId),
    ToAll(Split),
}

/// Who has what a report reads.
enum Home {
    Here,
    Other(DaemonId),
    Several,
}

/// A report whose parts are answered by their homes.
struct Split {
    /// What each is asked.
    partial: Report,
    first_sort_column: i32,
    here: PartSet,
    there: BTreeMap<DaemonId, PartSet>,
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
            cold: Cold::new(),
            room_asked_at: AtomicU64::new(0),
            busy: RwLock::default(),
            asked: AtomicU64::new(0),
            forwarded: AtomicU64::new(0),
            hedged: AtomicU64::new(0),
            for_others: AtomicU64::new(0),
            in_parts: AtomicU64::new(0),
        }
    }

    pub(crate) fn counts(&self) -> HomeCounts {
        HomeCounts {
            forwarded: self.forwarded.load(Ordering::Relaxed),
            hedged: self.hedged.load(Ordering::Relaxed),
            for_others: self.for_others.load(Ordering::Relaxed),
            in_parts: self.in_parts.load(Ordering::Relaxed),
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
        // Boxed: most reports need none of what is boxed here, and are not to make room for it.
        let known = match self.cold.knows_any(self.now()) {
            // What is in memory is answered even if this cannot be told now.
            true => Box::pin(self.asks(reports, table, report)).await.unwrap_or_default(),
            false => None,
        };
        let is_cold = known.as_ref().is_some_and(|asks| self.cold.knows(asks.needs, self.now()));
        if !is_cold {
            match reports.run_reading(table, fresh, report, memory, Missing::Leave).await? {
                Outcome::Done(answer) => return Ok(Some(answer)),
                Outcome::Beyond => return Ok(None),
                Outcome::Cold => {}
            }
        }
        Box::pin(async {
            let here = reports.run_within(table, fresh, report, memory);
            let asks = match known {
                Some(known) => Some(known),
                None => self.asks(reports, table, report).await?,
            };
            let Some(asks) = asks else { return here.await };
            self.ask_for_room(reports);
            match self.route(table, report, &asks) {
                Route::Here => {
                    let answer = here.await;
                    self.note_reads(table, &asks, &answer);
                    answer
                }
                Route::To(daemon) => {
                    self.cold.note(asks.needs, self.now());
                    let answer = self.ask(daemon, table, report, here).await;
                    self.note_reads(table, &asks, &answer);
                    answer
                }
                Route::ToAll(split) => {
                    match self.in_parts(reports, snapshot, report, memory, split).await {
                        Some(answer) => Ok(answer),
                        None => here.await,
                    }
                }
            }
        })
        .await
    }

    /// What a report needs that another daemon may have in memory; `None` where it is to be answered here anyway.
    async fn asks(
        &self,
        reports: &Reports,
        table: &Table,
        report: &Report,
    ) -> Result<Option<Asks>> {
        if self.member.is_alone() {
            return Ok(None);
        }
        let bytes = reports.table_bytes(table).await?;
        if bytes < self.bytes_min {
            return Ok(None);
        }
        let Some(first_sort_column) = table.first_sort_column() else { return Ok(None) };
        let parts = reports.parts(table, report, first_sort_column).await?;
        Ok(parts.map(|parts| {
            let needs = self.cold.needs(table.uuid(), report, first_sort_column, parts.first());
            let part_bytes = bytes / u64::from(parts.with_rows());
            Asks { first_sort_column, parts, part_bytes, needs }
        }))
    }

    /// Where a report that is not in memory is to be answered.
    fn route(&self, table: &Table, report: &Report, asks: &Asks) -> Route {
        match self.home_of(table.uuid(), asks) {
            Home::Here => Route::Here,
            Home::Other(daemon) => Route::To(daemon),
            Home::Several => {
                let split =
                    report.partial().and_then(|partial| self.split(table.uuid(), asks, partial));
                split.map_or(Route::Here, Route::ToAll)
            }
        }
    }

    /// Notes that a report had to be read, though its part has a home.
    fn note_reads(&self, table: &Table, asks: &Asks, answer: &Result<Option<Answer>>) {
        if let Ok(Some(answer)) = answer
            && answer.work.chunk_misses > 0
        {
            let table = TableId(table.uuid().into_bytes());
            let event = HotEvent::Read { table, bucket: asks.parts.first() };
            self.hot.lock().on(event, self.now());
        }
    }

    fn ask_for_room(&self, reports: &Reports) {
        let now = nanoseconds(self.now());
        if self.room_asked_at.load(Ordering::Relaxed) <= now {
            self.room_asked_at.store(now + nanoseconds(Monotonic(ROOM_EVERY)), Ordering::Relaxed);
            let (bytes, bytes_max) = reports.memory();
            self.hot.lock().note_room(Room { bytes_max, bytes });
        }
    }

    fn home_of(&self, table: Uuid, asks: &Asks) -> Home {
        let placement = self.placement(table);
        let (first, me) = (asks.parts.first(), self.member.id());
        let Some(home) = placement.homes(first).first() else { return Home::Here };
        // The rows of an account may lie on both sides of a border. Of a report over more, one daemon must have all
        // parts, else none is better than this one.
        let is_wide = asks.parts.iter().nth(2).is_some();
        if is_wide && !asks.parts.iter().all(|part| placement.homes(part).first() == Some(home)) {
            return Home::Several;
        }
        let now = self.now();
        let id = TableId(table.into_bytes());
        let count = {
            let mut hot = self.hot.lock();
            let bytes = asks.part_bytes;
            hot.on(HotEvent::Requests { table: id, bucket: first, count: 1, bytes }, now);
            hot.homes(id, first)
        };
        let homes = placement.homes(first);
        let homes = homes.get(..count).unwrap_or(homes);
        if homes.contains(&me) {
            return Home::Here;
        }
        let request = self.asked.fetch_add(1, Ordering::Relaxed);
        let in_flight = |daemon| {
            let busy = self.open(daemon, now)?;
            Some(busy.in_flight.load(Ordering::Relaxed))
        };
        choose(homes, request, in_flight).map_or(Home::Here, Home::Other)
    }

    /// What a daemon has to do, if it is likely to answer.
    fn open(&self, daemon: DaemonId, now: Monotonic) -> Option<Arc<Busy>> {
        let busy = self.busy(daemon);
        let is_avoided = now.0.as_nanos() < u128::from(busy.avoided_until.load(Ordering::Relaxed));
        (!is_avoided && self.member.reaches(daemon)).then_some(busy)
    }

    /// Shares the parts of a report among their homes; `None` where these are too many.
    fn split(&self, table: Uuid, asks: &Asks, partial: Report) -> Option<Split> {
        let (placement, me, now) = (self.placement(table), self.member.id(), self.now());
        let (first_sort_column, here) = (asks.first_sort_column, PartSet::default());
        let mut split = Split { partial, first_sort_column, here, there: BTreeMap::new() };
        let mut is_open: HashMap<DaemonId, bool> = HashMap::new();
        for part in asks.parts.iter() {
            let home = placement.homes(part).first().copied().filter(|home| {
                *home != me
                    && *is_open.entry(*home).or_insert_with(|| self.open(*home, now).is_some())
            });
            match home {
                Some(home) => split.there.entry(home).or_default().insert(part),
                None => split.here.insert(part),
            }
        }
        (1..=SPLIT_MAX).contains(&split.there.len()).then_some(split)
    }

    /// Answers a report together with the homes of its parts. `None` where it must be answered here in one piece; the
    /// answer is `None` where the planner must.
    async fn in_parts(
        &self,
        reports: &Reports,
        snapshot: &TableSnapshot,
        report: &Report,
        memory: &dyn Memory,
        split: Split,
    ) -> Option<Option<Answer>> {
        let Split { partial, first_sort_column, here, there } = &split;
        let (table, fresh) = (&snapshot.table, &snapshot.fresh);
        let run = |fresh, parts| {
            reports.run_parts(table, fresh, partial, (*first_sort_column, parts), memory)
        };
        let asked =
            there.iter().map(|(home, parts)| self.ask_for_parts(*home, table, &split, parts));
        let (own, others) = tokio::join!(run(fresh, here), join_all(asked));
        let mut answers = vec![own.ok()??];
        let mut missing = PartSet::default();
        for (parts, answer) in there.values().zip(others) {
            match answer {
                Some(answer) => answers.push(answer?),
                None => missing.insert_all(parts),
            }
        }
        if !missing.is_empty() {
            self.hedged.fetch_add(1, Ordering::Relaxed);
            answers.push(run(&FreshRows::none(table), &missing).await.ok()??);
        }
        let combined = reports.combine(report, &answers, memory).await.ok()?;
        self.in_parts.fetch_add(1, Ordering::Relaxed);
        Some(combined)
    }

    /// Asks a home for its parts of a report. `None` where it does not answer soon, or has another version; the answer is
    /// `None` where it is beyond a bound there.
    async fn ask_for_parts(
        &self,
        home: DaemonId,
        table: &Table,
        split: &Split,
        parts: &PartSet,
    ) -> Option<Option<Answer>> {
        let body = encode(table, &split.partial, Some((split.first_sort_column, parts)))?;
        let busy = self.busy(home);
        let _in_flight = InFlight::begin(Arc::clone(&busy));
        let answer = self.member.ask(home, ServiceKind::ReportParts, body, PARTS_LIMIT).await;
        match answer.and_then(|answer| decode(answer, &split.partial)) {
            Ok(answer) => Some(answer),
            Err(error) => {
                tracing::debug!(daemon = %home, %error, "parts of a report were not answered at their home");
                if error.kind() == ErrorKind::Unavailable {
                    self.avoid(&busy);
                }
                None
            }
        }
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
        let Some(body) = encode(table, report, None) else { return here.await };
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
        busy.avoided_until.store(nanoseconds(until), Ordering::Relaxed);
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

fn nanoseconds(time: Monotonic) -> u64 {
    u64::try_from(time.0.as_nanos()).unwrap_or(u64::MAX)
}

/// The table's UUID and schema, its name; for some parts, the version, the field id of the first sort column and a bit for
/// each part; then the report.
fn encode(table: &Table, report: &Report, parts: Option<(i32, &PartSet)>) -> Option<Bytes> {
    let report = report.encode()?;
    let ident = table.ident();
    let version = table.metadata_location();
    let texts = ident.namespace.len() + ident.name.len();
    let mut out = BytesMut::with_capacity(report.len() + texts + 32);
    out.put_slice(table.uuid().as_bytes());
    out.put_i32_le(table.schema_id());
    put_text(&mut out, &ident.namespace)?;
    put_text(&mut out, &ident.name)?;
    if let Some((first_sort_column, parts)) = parts {
        put_text(&mut out, version)?;
        out.put_i32_le(first_sort_column);
        parts.words().iter().for_each(|word| out.put_u64_le(*word));
    }
    out.put_slice(&report);
    Some(out.freeze())
}

fn put_text(out: &mut BytesMut, text: &str) -> Option<()> {
    out.put_u32_le(u32::try_from(text.len()).ok()?);
    out.put_slice(text.as_bytes());
    Some(())
}

fn read_text(body: &mut Bytes) -> Option<String> {
    let length = body.try_get_u32_le().ok()? as usize;
    let text = (length <= body.len()).then(|| body.split_to(length))?;
    String::from_utf8(text.to_vec()).ok()
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
        let ident = TableIdent::new(read_text(body)?, read_text(body)?);
        Some(Self { uuid: Uuid::from_bytes(uuid), schema_id, ident })
    }
}

/// Which parts of which version a report of another daemon is for.
pub(crate) struct AskedParts {
    pub(crate) version: String,
    pub(crate) first_sort_column: i32,
    pub(crate) parts: PartSet,
}

impl AskedParts {
    /// Reads what is between [`Asked`] and the report.
    pub(crate) fn read(body: &mut Bytes) -> Option<Self> {
        let version = read_text(body)?;
        let first_sort_column = body.try_get_i32_le().ok()?;
        let mut words = PartSet::default().words();
        for word in &mut words {
            *word = body.try_get_u64_le().ok()?;
        }
        Some(Self { version, first_sort_column, parts: PartSet::of_words(words) })
    }
}

pub(crate) fn unreadable() -> Error {
    Error::invalid("a report of another daemon cannot be read").with_sqlstate("08P01")
}
