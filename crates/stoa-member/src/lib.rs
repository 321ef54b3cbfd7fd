//! One daemon as a member of its cluster.
//!
//! In: the catalog's database, other daemons, this daemon's commit log. Out: answers to *may I answer
//! exact reads?* and *who else is there?*; rows of this daemon on all others, and theirs here; the logs of
//! the dead in files.
//!
//! ```text
//!               ┌── statements ──► catalog's database (members, leases)
//!  machines ◄───┤── calls ───────► other daemons: probes, parts of logs, holds
//!  (stoa-       └── log ─────────► stoa-ingest: shipping, copies, takeovers
//!   cluster)
//! ```
//!
//! The rules are those of [`stoa_cluster`], which decides; this crate carries out, and tells the machines
//! what came of it.
//!
//! **Invariants:** a read is exact only if the lease of this daemon's membership held after the read was
//! done, and all logs that there were when it joined have been heard of; an append is acknowledged only
//! once all other living members show it; a member that reads that it is dead answers nothing any more.
//!
//! Not here: SQL, what a server does when its membership ends.

mod asking;
mod directory;
mod drive;
mod event;
mod exact;
mod happened;
mod holding;
mod holds;
mod homes;
mod identity;
mod join;
mod machines;
mod member;
mod messages;
mod names;
mod sending;
mod service;
mod serving;
mod status;
mod takeover;

#[doc(hidden)]
pub use directory::Route;

pub use happened::{MemberEventKind, MemberHappened};
pub use homes::HomeCandidates;
pub use join::JoinOptions;
pub use member::Member;
pub use service::{Service, ServiceKind};
pub use status::{LogOwner, MemberStatus, MembersStatus};
