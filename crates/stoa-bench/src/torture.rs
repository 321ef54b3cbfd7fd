//! Kills a server again and again while it takes in rows, and looks whether anything is lost.
//!
//! ```text
//! start ─► check all tables ─► write, flush, compact, expire, change rows ─► kill ─┐
//!   ▲                                                                              │
//!   └──────────────────────────────────────────────────────────────────────────────┘
//! ```
//! Writers on all protocols note in a [`Ledger`] what they sent and what was acknowledged. The server
//! dies by SIGKILL at a random moment, while it serves or while it starts, or by itself at a named
//! fail point ([`Death`]). After each restart every acknowledged parcel of rows must be there exactly
//! once with the values that it had, what was deleted must stay away, and of what was in flight each
//! parcel must be there wholly or not at all, and stay so.
//!
//! Not here: what a power cut does, which no signal can show: `stoa-commitlog` simulates disks.

mod check;
mod cluster;
mod daemon;
mod death;
mod gardener;
mod histories;
mod hurt;
mod ledger;
mod random;
mod run;
mod tables;
mod wire;

pub use cluster::{ClusterTortureOptions, ClusterTortureResult, run_cluster};
pub use daemon::Warehouse;
pub use death::Death;
pub use histories::{HistoryOptions, HistoryResult, run_histories};
pub use ledger::Ledger;
pub use run::{TortureOptions, TortureResult, run};
