//! A durable commit log: segments, group commit, fsync policy, replay.
//!
//! In: payloads, opaque bytes. Out: a position at once, an acknowledgement when a sync covers it,
//! and after any crash the payloads again, in order.
//!
//! # The rules, and where they live
//!
//! 1. A frame is magic, length, sequence and CRC-32C over header and payload, in one write: `frame`.
//! 2. The end of the log is never inferred from file length (`scan`); the file is synced, and the
//!    directory at each new segment (`storage`).
//! 3. A bad frame at the end of the newest segment is a torn tail and cut off; anywhere else it is
//!    damage, and the log is refused, naming segment and offset: `walk`, `recover`.
//! 4. An append is acknowledged only when a sync that covers it has returned; a group is whatever
//!    arrived during the previous sync, up to a number of bytes; no timer on disks: `writer`, `queue`.
//! 5. Any error in writing or syncing stops the log: everybody who waits is told, nothing is written
//!    or synced again: `writer`, `poison`.
//! 6. What is recovered is a prefix of what was written and holds all that was acknowledged:
//!    tested in `tests/` on a simulated disk, by killing processes, and by damaging bytes.
//!
//! # Example
//!
//! ```
//! use stoa_commitlog::{CommitLog, Durability, LogOptions, local_storage};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let directory = directory.path();
//! let (log, recovery) =
//!     CommitLog::open_blocking(local_storage(directory).unwrap(), LogOptions::disk()).unwrap();
//! assert_eq!(recovery.frames, 0);
//! let appended = log.append_blocking(&[b"row 1, ", b"row 2"], Durability::Sync).unwrap();
//! let position = appended.wait().unwrap();
//!
//! let start = log.id().at(0);
//! let frames: Vec<_> = log.replay(start).unwrap().collect::<Result<_, _>>().unwrap();
//! assert_eq!(frames, [(position, "row 1, row 2".into())]);
//! log.close_blocking().unwrap();
//! ```
//!
//! Not here: what payloads mean, which position a table's snapshot carries (`stoa-table`), how a URL
//! becomes an object store (`stoa-store`).

mod appended;
mod blocking;
mod core;
mod dump;
mod failpoint;
mod frame;
mod log;
mod options;
mod poison;
mod position;
mod queue;
mod recover;
mod repair;
mod replay;
mod salvage;
mod scan;
mod segment;
pub mod sim;
mod status;
mod storage;
mod verify;
mod walk;
mod writer;

pub use appended::{Appended, Durability};
pub use dump::{DumpOptions, dump};
pub use frame::PAYLOAD_BYTES_MAX;
pub use log::CommitLog;
pub use options::LogOptions;
pub use position::{LogId, LogPosition};
pub use recover::Recovery;
pub use repair::{Behind, RepairOutcome, RepairPlan, plan_repair};
pub use replay::Replay;
pub use status::{Distribution, LogStatus};
pub use storage::local::local_storage;
pub use storage::object::object_storage;
pub use storage::url::storage_for_url;
pub use storage::{LogStorage, SegmentBytes, SegmentWriter, StorageKind, StorageLock};
pub use verify::{LogReport, SegmentReport, verify};
pub use walk::Damage;
