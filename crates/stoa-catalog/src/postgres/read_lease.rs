//! A lease to read pointers and the version of the policy without asking: who moves them waits until all such leases have
//! run out (Gray and Cheriton, *Leases*, SOSP 1989).
//!
//! ```text
//! who moves    lock shared ── announce: n + 1 ── wait 25 ms ─────────────── move, commit, unlock
//! a daemon     look: n ── from memory for 20 ms ──┘ look: n + 1 ── ask ── ask … nobody moves: look, from memory
//! ```
//! A trigger of the database announces moves, so those of other engines count as well. The announcement is a number of a
//! sequence, which others see before the transaction has ended. A daemon *looks* at the number every few milliseconds
//! while it answers reports. What it has read under a number stays true for the length of its lease after a look was sent
//! that found the same number. Leases are the longer, the more daemons look, so that PostgreSQL is not asked more often
//! than it can answer.
//!
//! In: numbers and answers, each with the moment at which its question was sent. Out: what is true now, without asking.
//!
//! **Invariants:** a number is trusted only after all who announced up to it have ended (`is_settled`), and only while
//! this daemon is noted in `stoa_read_leases`, as those who move wait for nobody where nobody is; what comes out was
//! read after that, by a query that found the same number; all times are counted from before a question was sent.
//!
//! Not here: what is known while PostgreSQL is away (`memory`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::{Executor, PgConnection, Row as _};
use stoa_env::random;
use stoa_env::timer::{self, Instant};
use uuid::Uuid;

use super::rows::within;
use super::sessions::Session;
use super::tables::SCHEMA_LOCK;
use super::{READ_TIMEOUT, Shared};
use crate::TableIdent;
use crate::relation::Relation;

/// How long what was read stays true after a look was sent: so long for each daemon that looks, and at least and at most.
const LEASE_EACH: Duration = Duration::from_micros(400);
const LEASE_MIN: Duration = Duration::from_millis(20);
const LEASE_MAX: Duration = Duration::from_millis(250);

/// How much longer who moves waits after the announcement: clocks may be of unequal speed.
const MARGIN: Duration = Duration::from_millis(5);

/// Between two looks, and between two attempts to settle a number: this part of a lease.
const LOOK_PART: f64 = 0.4;

/// For so long after the last report a daemon goes on looking.
const WANTED: Duration = Duration::from_secs(1);

/// How often a daemon that looks notes that it does, how long it relies on that, and how long those who move do. The
/// last is on PostgreSQL's clock.
const NOTE_EVERY: Duration = Duration::from_secs(10);
const NOTED: Duration = Duration::from_secs(30);
const NOTED_FOR_OTHERS: Duration = Duration::from_secs(120);

/// Names that a lease covers; others are asked for.
const RELATIONS_MAX: usize = 10_000;

/// The lock that everybody holds who moves a pointer. Any number that nobody else uses.
const MOVING_LOCK: i64 = 0x73746f61_00000002;

/// The trigger. Its name changes when it does something else.
const TRIGGER: &str = "stoa_announce_move_1";

/// The first number of a sequence is its `last_value` before it is given out as well as after.
macro_rules! last_move {
    () => {
        "SELECT last_value + is_called::integer FROM stoa_moves"
    };
}
pub(super) use last_move;

const LOOK: &str = last_move!();

pub(super) struct ReadLease(Mutex<State>);

struct State {
    holder: Uuid,
    /// When somebody last asked for something that a lease could answer.
    wanted: Option<Instant>,
    /// When the last look was sent.
    looked: Option<Instant>,
    /// When somebody last tried to settle a number.
    tried: Option<Instant>,
    /// When this daemon last asked to be noted, and when it last was.
    asked: Option<Instant>,
    noted: Option<Instant>,
    /// With leases of this length.
    length: Duration,
    /// The last number that was found.
    found: Option<i64>,
    /// Announcements up to this number have all ended.
    settled: Option<i64>,
    /// Until when `relations` and `policy_version` are true.
    until: Option<Instant>,
    relations: HashMap<TableIdent, Relation>,
    policy_version: Option<i64>,
    /// Reads that had to ask, and those that had not.
    reads: (u64, u64),
}

impl Default for ReadLease {
    fn default() -> Self {
        Self(Mutex::new(State {
            holder: random::uuid(),
            wanted: None,
            looked: None,
            tried: None,
            asked: None,
            noted: None,
            length: LEASE_MIN,
            found: None,
            settled: None,
            until: None,
            relations: HashMap::new(),
            policy_version: None,
            reads: (0, 0),
        }))
    }
}

impl ReadLease {
    pub(super) fn relation(&self, ident: &TableIdent) -> Option<Relation> {
        self.read(|state| state.relations.get(ident).cloned())
    }

    pub(super) fn policy_version(&self) -> Option<i64> {
        self.read(|state| state.policy_version)
    }

    /// What is true now, if this daemon knows without asking; notes that it would like to.
    fn read<T>(&self, known: impl FnOnce(&State) -> Option<T>) -> Option<T> {
        let now = timer::now();
        let mut state = self.0.lock();
        state.wanted = Some(now);
        let known = if state.is_held(now) { known(&state) } else { None };
        match known {
            Some(_) => state.reads.1 += 1,
            None => state.reads.0 += 1,
        }
        known
    }

    /// Reads that had to ask, and those that had not.
    pub(super) fn reads(&self) -> (u64, u64) {
        self.0.lock().reads
    }

    /// Forgets the pointers of these names.
    pub(super) fn forget(&self, idents: &[&TableIdent]) {
        let mut state = self.0.lock();
        for ident in idents {
            state.relations.remove(*ident);
        }
    }

    /// Forgets everything: another connection asks from now on, perhaps another server.
    pub(super) fn start_again(&self) {
        let mut state = self.0.lock();
        let State { holder, wanted, reads, .. } = *state;
        *state = State { holder, wanted, reads, ..Self::default().0.into_inner() };
    }

    /// When the next look is due; `None` where nobody wants to know.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let state = self.0.lock();
        state.wanted.filter(|wanted| wanted.elapsed() < WANTED)?;
        Some(state.looked.map_or_else(timer::now, |looked| looked + state.look_every()))
    }

    /// Whether this daemon must be noted before it can rely on a look that is sent now.
    fn must_be_noted(&self) -> bool {
        let state = self.0.lock();
        let is_wanted = state.wanted.is_some_and(|wanted| wanted.elapsed() < WANTED);
        is_wanted && state.asked.is_none_or(|asked| asked.elapsed() >= NOTE_EVERY)
    }

    /// Who this daemon is, and how long its leases are, which get no shorter: the one that is held would outlast the wait
    /// of those who read the shorter length.
    fn holder(&self) -> (Uuid, Duration) {
        let state = self.0.lock();
        (state.holder, state.length)
    }

    /// This daemon was noted by a statement that was sent at `sent`, with leases of this length; `None` where moves are
    /// not announced, so that nothing is known without asking.
    fn note(&self, sent: Instant, length: Option<Duration>) {
        let mut state = self.0.lock();
        // Who moved while it was not noted may not have waited, nor will who moves from now on, for longer leases.
        let was_noted = state.noted.is_some_and(|noted| noted + NOTED > timer::now());
        if !was_noted || length.is_none_or(|length| length < state.length) {
            state.drop_all();
        }
        state.asked = Some(sent);
        state.noted = length.map(|_| sent);
        state.length = length.unwrap_or(LEASE_MIN);
    }

    /// A query sent at `sent` found `number`, and what is in `found`.
    pub(super) fn found<'f>(
        &self,
        sent: Instant,
        number: i64,
        found: impl Iterator<Item = (&'f TableIdent, Option<&'f Relation>)>,
        policy_version: Option<i64>,
    ) {
        let mut state = self.0.lock();
        state.looked = Some(sent);
        state.found = Some(number);
        if state.settled != Some(number) {
            state.drop_all();
            return;
        }
        let noted = state.noted.map(|noted| noted + NOTED);
        state.until = noted.map(|noted| noted.min(sent + state.length));
        state.policy_version = policy_version.or(state.policy_version);
        for (ident, relation) in found {
            match relation {
                None => {
                    state.relations.remove(ident);
                }
                Some(relation) if state.relations.get(ident) != Some(relation) => {
                    if state.relations.len() >= RELATIONS_MAX {
                        state.relations.clear();
                    }
                    state.relations.insert(ident.clone(), relation.clone());
                }
                Some(_) => {}
            }
        }
    }

    /// Whether looks are worth anything: moves are announced, and this daemon is noted.
    pub(super) fn is_noted(&self) -> bool {
        self.0.lock().noted.is_some_and(|noted| noted + NOTED > timer::now())
    }

    /// A number of which it is to be found out now whether all who announced up to it have ended.
    fn to_settle(&self) -> Option<i64> {
        let mut state = self.0.lock();
        let now = timer::now();
        let is_soon = state.tried.is_some_and(|tried| now < tried + state.look_every());
        if is_soon || state.settled.is_some() || state.noted.is_none_or(|at| at + NOTED <= now) {
            return None;
        }
        state.tried = Some(now);
        state.found
    }

    /// All who had announced a move when `number` was found have ended.
    fn settle(&self, number: i64) {
        self.0.lock().settled = Some(number);
    }
}

impl State {
    fn is_held(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    fn look_every(&self) -> Duration {
        self.length.mul_f64(LOOK_PART)
    }

    fn drop_all(&mut self) {
        self.settled = None;
        self.until = None;
        self.policy_version = None;
        self.relations.clear();
    }
}

/// Makes what announces moves, where it is missing: the account must own `iceberg_tables`.
pub(super) async fn ensure(connection: &mut PgConnection) -> sqlx::Result<()> {
    if are_announced(connection).await? {
        return Ok(());
    }
    let query = "SELECT quote_ident(nspname) FROM pg_namespace WHERE oid = (
        SELECT relnamespace FROM pg_class WHERE oid = to_regclass('iceberg_tables'))";
    let schema: String = connection.fetch_one(sqlx::query(query)).await?.try_get(0)?;
    connection.execute(definition(&schema).as_str()).await.map(|_| ())
}

/// All that announces moves, in the schema of `iceberg_tables`.
///
/// The function runs as who made it, whoever moves, so it names the schema of all that is not PostgreSQL's own.
fn definition(schema: &str) -> String {
    let (longest, margin) = (LEASE_MAX.as_millis(), MARGIN.as_millis());
    let noted = NOTED_FOR_OTHERS.as_secs();
    format!(
        "SELECT pg_advisory_xact_lock({SCHEMA_LOCK});
         CREATE SEQUENCE IF NOT EXISTS {schema}.stoa_moves;
         CREATE TABLE IF NOT EXISTS {schema}.stoa_read_leases (
             holder VARCHAR(36) NOT NULL PRIMARY KEY,
             noted_at TIMESTAMPTZ NOT NULL,
             lease_ms INTEGER NOT NULL);
         CREATE OR REPLACE FUNCTION {schema}.{TRIGGER}() RETURNS trigger
             LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
         DECLARE
             longest INTEGER := {longest};
         BEGIN
             IF current_setting('stoa.moving', true) IS DISTINCT FROM txid_current()::text THEN
                 PERFORM pg_advisory_xact_lock_shared({MOVING_LOCK});
                 PERFORM nextval('{schema}.stoa_moves');
                 IF current_setting('transaction_isolation') = 'read committed' THEN
                     SELECT max(lease_ms) INTO longest FROM {schema}.stoa_read_leases
                     WHERE noted_at > clock_timestamp() - interval '{noted} s';
                 END IF;
                 IF longest IS NOT NULL THEN
                     PERFORM pg_sleep((longest + {margin}) / 1000.0);
                 END IF;
                 PERFORM set_config('stoa.moving', txid_current()::text, true);
             END IF;
             RETURN NULL;
         END
         $body$;
         DROP TRIGGER IF EXISTS {TRIGGER} ON iceberg_tables;
         CREATE TRIGGER {TRIGGER} BEFORE UPDATE OR DELETE OR TRUNCATE ON iceberg_tables
             FOR EACH STATEMENT EXECUTE FUNCTION {schema}.{TRIGGER}();
         DROP TRIGGER IF EXISTS {TRIGGER} ON stoa_policy_version;
         CREATE TRIGGER {TRIGGER}
             BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON stoa_policy_version
             FOR EACH STATEMENT EXECUTE FUNCTION {schema}.{TRIGGER}()"
    )
}

/// Whether moves are announced, and the account may look at announcements.
async fn are_announced(connection: &mut PgConnection) -> sqlx::Result<bool> {
    let query = sqlx::query(
        "SELECT count(*) = 2
             AND coalesce(has_sequence_privilege(to_regclass('stoa_moves'), 'SELECT'), false)
             AND coalesce(has_table_privilege(to_regclass('stoa_read_leases'), 'INSERT'), false)
             AND coalesce(has_table_privilege(to_regclass('stoa_read_leases'), 'UPDATE'), false)
             AND coalesce(has_table_privilege(to_regclass('stoa_read_leases'), 'DELETE'), false)
         FROM pg_trigger
         WHERE tgname = $1 AND tgenabled IN ('O', 'A')
           AND tgrelid IN (to_regclass('iceberg_tables'), to_regclass('stoa_policy_version'))",
    );
    connection.fetch_one(query.bind(TRIGGER)).await?.try_get(0)
}

/// Does what is due so that reports need not ask: notes this daemon, looks, finds out whether anybody moves something.
/// Gives the session up where it fails.
pub(super) async fn keep(shared: &Arc<Shared>, session: &mut Option<Session>) {
    let is_current = |session: &Session| shared.sessions.is_current(session);
    let Some(mut kept) = session.take().filter(is_current) else { return };
    match within(READ_TIMEOUT, look(&shared.read_lease, kept.connection())).await {
        Ok(()) => *session = Some(kept),
        Err(error) => {
            // The next report asks, and finds out whether PostgreSQL is away.
            tracing::debug!(%error, "announcements of moves could not be looked at");
            shared.read_lease.start_again();
        }
    }
}

async fn look(lease: &ReadLease, connection: &mut PgConnection) -> sqlx::Result<()> {
    if lease.must_be_noted() {
        let sent = timer::now();
        let (holder, least) = lease.holder();
        let length = note(connection, holder, least).await?;
        lease.note(sent, length);
    }
    let sent = timer::now();
    if lease.is_noted() && lease.next_look().is_some_and(|at| at <= sent) {
        let number = connection.fetch_one(sqlx::query(LOOK)).await?.try_get(0)?;
        lease.found(sent, number, std::iter::empty(), None);
    }
    if let Some(number) = lease.to_settle()
        && is_settled(connection).await?
    {
        lease.settle(number);
    }
    Ok(())
}

/// Notes that `holder` relies on looks, and for how long, `least` or more; `None` where moves are not announced.
async fn note(
    connection: &mut PgConnection,
    holder: Uuid,
    least: Duration,
) -> sqlx::Result<Option<Duration>> {
    if !are_announced(connection).await? {
        return Ok(None);
    }
    let query = "SELECT count(*) FROM stoa_read_leases
        WHERE noted_at > clock_timestamp() - $1 * interval '1 s'";
    let query = sqlx::query(query).bind(NOTED_FOR_OTHERS.as_secs_f64());
    let others: i64 = connection.fetch_one(query).await?.try_get(0)?;
    let length = LEASE_EACH * u32::try_from(others).unwrap_or(0).min(10_000);
    let length = length.clamp(LEASE_MIN, LEASE_MAX).max(least);
    let milliseconds = length.as_millis() + 1;
    // A crash may take it back: then the connection is gone as well.
    let statement = format!(
        "SELECT set_config('synchronous_commit', 'off', true);
         DELETE FROM stoa_read_leases WHERE noted_at < clock_timestamp() - interval '1 day';
         INSERT INTO stoa_read_leases (holder, noted_at, lease_ms)
         VALUES ('{holder}', clock_timestamp(), {milliseconds})
         ON CONFLICT (holder) DO UPDATE SET noted_at = excluded.noted_at, lease_ms = excluded.lease_ms"
    );
    connection.execute(statement.as_str()).await.map(|_| Some(length))
}

/// Whether all who announced a move before this was sent have ended.
async fn is_settled(connection: &mut PgConnection) -> sqlx::Result<bool> {
    let query = sqlx::query("SELECT pg_try_advisory_xact_lock($1)").bind(MOVING_LOCK);
    connection.fetch_one(query).await?.try_get(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelationKind;

    const LENGTH: Duration = Duration::from_millis(20);

    /// A lease that is held on the table `t` from now on.
    fn held() -> (ReadLease, TableIdent) {
        let (lease, t) = (ReadLease::default(), TableIdent::new("a", "t"));
        lease.note(timer::now(), Some(LENGTH));
        find(&lease, &t, 5);
        assert_eq!(lease.relation(&t), None, "somebody may be moving it");
        assert_eq!(lease.to_settle(), Some(5));
        lease.settle(5);
        assert_eq!(lease.relation(&t), None, "it may have been moved since it was read");
        find(&lease, &t, 5);
        (lease, t)
    }

    fn find(lease: &ReadLease, ident: &TableIdent, number: i64) {
        let relation = Relation { kind: RelationKind::Table, location: number.to_string() };
        lease.found(timer::now(), number, [(ident, Some(&relation))].into_iter(), Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_by_itself() {
        let (lease, t) = held();
        timer::sleep(LENGTH - Duration::from_millis(1)).await;
        assert_eq!(lease.relation(&t).map(|known| known.location).as_deref(), Some("5"));
        assert_eq!(lease.policy_version(), Some(7));
        timer::sleep(Duration::from_millis(1)).await;
        assert_eq!((lease.relation(&t), lease.policy_version()), (None, None));
        // A look that finds nothing new is enough.
        lease.found(timer::now(), 5, std::iter::empty(), None);
        assert!(lease.relation(&t).is_some() && lease.policy_version() == Some(7));
        // An answer that was long under way is not.
        let sent = timer::now();
        timer::sleep(LENGTH).await;
        lease.found(sent, 5, std::iter::empty(), None);
        assert_eq!(lease.relation(&t), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_move_ends_it_until_all_who_move_have_ended() {
        let (lease, t) = held();
        lease.found(timer::now(), 6, std::iter::empty(), None);
        assert_eq!((lease.relation(&t), lease.policy_version()), (None, None));
        find(&lease, &t, 6);
        assert_eq!(lease.relation(&t), None);
        assert_eq!(lease.to_settle(), None, "tried a moment ago");
        timer::sleep(LENGTH).await;
        assert_eq!(lease.to_settle(), Some(6));
        lease.settle(6);
        find(&lease, &t, 7);
        assert_eq!(lease.relation(&t), None, "the next has begun to move");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_known_by_a_daemon_that_is_not_noted() {
        let (lease, t) = held();
        timer::sleep(NOTED).await;
        find(&lease, &t, 5);
        assert_eq!(lease.relation(&t), None, "others wait for it, but it cannot be sure");
        assert!(lease.must_be_noted() && lease.to_settle().is_none());
        lease.note(timer::now(), Some(LENGTH));
        find(&lease, &t, 5);
        assert_eq!(lease.relation(&t), None, "somebody may have moved it without waiting");

        let (lease, t) = held();
        lease.note(timer::now(), Some(LENGTH / 2));
        assert_eq!(lease.relation(&t), None, "others wait for a shorter lease from now on");
        let (lease, t) = held();
        lease.note(timer::now(), None);
        find(&lease, &t, 5);
        assert!(lease.relation(&t).is_none() && !lease.must_be_noted());
        let (lease, t) = held();
        lease.start_again();
        find(&lease, &t, 5);
        assert_eq!(lease.relation(&t), None);
    }
}
