//! Leases: who may do a job alone for the next seconds.
//!
//! ```text
//!            acquire                 renew, each second
//!   Idle ───────────────► Held ─────────────────────────┐
//!     ▲                    │ ▲                          │
//!     │                    │ └──────────────────────────┘
//!     └── refused          └── another has it, or the deadline has passed ─► Lost
//! ```
//!
//! In: the time, and what the database answered. Out: statements to send. [`Arbiter`] is what the rows
//! do, a model of the statements below; [`Lease`] is the holder's side.
//!
//! ```sql
//! -- acquire; $5 is `until` as it was last read, see `watch`
//! INSERT INTO stoa_leases AS lease (name, daemon, incarnation, epoch, until)
//! VALUES ($1, $2, $3, 1, clock_timestamp() + $4)
//! ON CONFLICT (name) DO UPDATE
//!   SET daemon = $2, incarnation = $3, until = clock_timestamp() + $4,
//!       epoch = lease.epoch
//!             + CASE WHEN lease.daemon = $2 AND lease.incarnation = $3 THEN 0 ELSE 1 END
//!   WHERE lease.daemon = $2 AND lease.incarnation <= $3
//!      OR lease.until < clock_timestamp() AND lease.until = $5
//!   RETURNING epoch;
//! -- renew; no row: lost
//! UPDATE stoa_leases SET until = clock_timestamp() + $4
//!   WHERE name = $1 AND daemon = $2 AND incarnation = $3 AND epoch = $5;
//! -- check, inside the transaction that the lease protects
//! SELECT 1 FROM stoa_leases
//!   WHERE name = $1 AND daemon = $2 AND incarnation = $3 AND epoch = $4 FOR SHARE;
//! -- release; the row stays, so that its epoch never goes back
//! UPDATE stoa_leases SET until = '-infinity'
//!   WHERE name = $1 AND daemon = $2 AND incarnation = $3 AND epoch = $4;
//! ```
//!
//! **Invariants:** a holder's deadline counts from before it sent the request that was granted, on its
//! monotonic clock, minus a margin; the epoch of a name only grows. Two holders never both believe
//! that they hold a lease, as long as monotonic clocks run equally fast within the margin.
//!
//! A later life of a daemon gets the leases of its earlier ones at once. A daemon's id is in a file that
//! its process locks, so the earlier life has ended.
//!
//! A lease only avoids work done twice. What must not happen twice is guarded by the epoch: in the catalog by
//! the check above, in a log by its claim.

mod arbiter;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

pub use arbiter::{Arbiter, LeaseRow};

use crate::{DaemonId, DatabaseTime, Incarnation, Monotonic};

/// How long leases last and when they are renewed. Equal on all daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// How long a lease is valid after it was granted, on the database's clock.
    pub ttl: Duration,
    /// The time between renewals.
    pub renew_each: Duration,
    /// How much earlier than the database the holder regards its lease as lost. Covers clocks of different
    /// speed, and the time between a check of the deadline and the effect that it allows.
    pub margin: Duration,
}

impl Default for LeaseOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(5),
            renew_each: Duration::from_secs(1),
            margin: Duration::from_millis(500),
        }
    }
}

/// One life of a daemon, as holder of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// The daemon.
    pub daemon: DaemonId,
    /// Its life.
    pub incarnation: Incarnation,
}

impl Holder {
    /// Whether `other` is the same daemon, started again since.
    pub fn is_earlier_life_of(self, other: Self) -> bool {
        self.daemon == other.daemon && self.incarnation < other.incarnation
    }
}

/// Until when a holder may believe that it holds something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadline(Option<Monotonic>);

impl Deadline {
    /// Takes note that the request sent at `sent` was granted for `ttl`.
    pub fn extend(&mut self, sent: Monotonic, options: LeaseOptions) {
        let until = sent + options.ttl.saturating_sub(options.margin);
        self.0 = self.0.max(Some(until));
    }

    /// Whether the deadline has not passed. Ask after a pause, not before: `now` must have been read after
    /// everything that the answer is to cover.
    pub fn holds(self, now: Monotonic) -> bool {
        self.0.is_some_and(|until| now < until)
    }

    /// The deadline, exclusive.
    pub fn until(self) -> Option<Monotonic> {
        self.0
    }
}

/// The holder's side of one lease.
#[derive(Clone, Debug)]
pub struct Lease {
    options: LeaseOptions,
    state: State,
    deadline: Deadline,
    /// Requests without an answer: number and time of sending.
    sent: BTreeMap<u64, Monotonic>,
    requests: u64,
    last_sent: Option<Monotonic>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Held { epoch: u64 },
    Lost,
}

/// What happens to a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    /// Time has passed; send it a few times per renewal.
    Tick,
    /// Asks for the lease, whose row was observed with this `until` for the whole time to live (`watch`).
    Acquire {
        /// `until` of the row; `None` where there is no row.
        observed: Option<DatabaseTime>,
    },
    /// The database granted the lease.
    Granted {
        /// The number of the request.
        request: u64,
        /// The fencing token.
        epoch: u64,
    },
    /// The database renewed the lease.
    Renewed {
        /// The number of the request.
        request: u64,
    },
    /// No row: another has the lease.
    Refused {
        /// The number of the request.
        request: u64,
    },
}

/// What a holder wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// Send the first statement.
    Acquire {
        /// Names the answer.
        request: u64,
        /// As passed in.
        observed: Option<DatabaseTime>,
    },
    /// Send the second statement.
    Renew {
        /// Names the answer.
        request: u64,
        /// The fencing token.
        epoch: u64,
    },
    /// Stop what the lease protects. It does not come back; make a new [`Lease`] to ask again.
    Stop,
}

impl Lease {
    /// A lease that is not held.
    pub fn new(options: LeaseOptions) -> Self {
        Self {
            options,
            state: State::Idle,
            deadline: Deadline::default(),
            sent: BTreeMap::new(),
            requests: 0,
            last_sent: None,
        }
    }

    /// The fencing token, if the lease is held at `now`.
    pub fn holds(&self, now: Monotonic) -> Option<u64> {
        match self.state {
            State::Held { epoch } if self.deadline.holds(now) => Some(epoch),
            _ => None,
        }
    }

    /// Takes an event in. A request without an answer needs no event: it is given up with the next one.
    pub fn on(&mut self, event: LeaseEvent, now: Monotonic) -> Vec<LeaseAction> {
        match event {
            LeaseEvent::Tick => self.tick(now),
            LeaseEvent::Acquire { observed } if self.state == State::Idle => {
                let request = self.send(now);
                vec![LeaseAction::Acquire { request, observed }]
            }
            LeaseEvent::Acquire { .. } => vec![],
            LeaseEvent::Granted { request, epoch } => {
                if self.state == State::Idle && self.extend(request) {
                    self.state = State::Held { epoch };
                }
                vec![]
            }
            LeaseEvent::Renewed { request } => {
                // Also after the deadline: the database knows of nobody else.
                self.extend(request);
                vec![]
            }
            LeaseEvent::Refused { request } => match (self.sent.remove(&request), self.state) {
                (Some(_), State::Held { .. }) => {
                    self.state = State::Lost;
                    vec![LeaseAction::Stop]
                }
                _ => vec![],
            },
        }
    }

    fn tick(&mut self, now: Monotonic) -> Vec<LeaseAction> {
        let State::Held { epoch } = self.state else { return vec![] };
        let due = self.last_sent.is_none_or(|sent| now.since(sent) >= self.options.renew_each);
        if !due {
            return vec![];
        }
        let request = self.send(now);
        vec![LeaseAction::Renew { request, epoch }]
    }

    fn send(&mut self, now: Monotonic) -> u64 {
        // Answers to older requests would extend nothing any more.
        self.sent.retain(|_, sent| now.since(*sent) < self.options.ttl);
        self.requests += 1;
        self.sent.insert(self.requests, now);
        self.last_sent = Some(now);
        self.requests
    }

    /// Counts the deadline from when `request` was sent; false if it is not known.
    fn extend(&mut self, request: u64) -> bool {
        let Some(sent) = self.sent.remove(&request) else { return false };
        self.deadline.extend(sent, self.options);
        true
    }
}
