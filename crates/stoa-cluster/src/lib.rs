//! Many daemons as one server, as state machines.
//!
//! In: events (the time, messages of peers, answers of the database). Out: actions (messages, statements) for the
//! caller to carry out, and answers to questions such as *may I still answer exact reads?* Each machine is a
//! plain type with `on(event, now) -> actions`, so a simulation can drive all of them through any history
//! (`stoa-sim`).
//!
//! | module | question |
//! |---|---|
//! | [`placement`] | which daemons cache which part of a table? |
//! | [`hot`] | which buckets need several homes, and which one takes this request? |
//! | [`membership`] | who belongs to the cluster, and who gets requests? |
//! | [`lease`] | who may do a job alone? |
//! | [`takeover`] | what becomes of the log of a dead daemon? |
//! | [`fresh`] | when is a write acknowledged, and which reads may be answered? |
//! | [`pins`] | which files may be deleted? |
//! | [`watch`] | how long has a row been unchanged? |
//!
//! The arbiter is the catalog's database; there is no leader and no consensus of our own. Only the database's clock
//! expires leases, only monotonic clocks tell a holder its own deadline ([`DatabaseTime`], [`Monotonic`]).
//! A lease avoids work done twice; what must not happen twice is guarded by tokens, checked where the
//! effect happens.
//!
//! **Invariants:** no clock, no randomness, no I/O, no threads; the same inputs give the same outputs on
//! every machine; without the database nobody joins, nobody dies, and reports go on.
//!
//! Not here: SQL statements against the database (`stoa-catalog`), connections between daemons, reading and writing logs
//! and files.

pub mod fresh;
pub mod hot;
mod id;
pub mod lease;
pub mod membership;
pub mod pins;
pub mod placement;
pub mod takeover;
mod time;
pub mod watch;

pub use id::{DaemonId, Incarnation, LogId, TableId};
pub use time::{DatabaseTime, Monotonic};
