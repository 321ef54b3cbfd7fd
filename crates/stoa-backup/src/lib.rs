//! Backups of a warehouse, taken while it is read and written.
//!
//! ```text
//! <backup>/files/<path below the warehouse>   each file once, shared by all backups: files never change
//! <backup>/catalogs/<id>.db                   the catalog as it was, a SQLite file
//! <backup>/backups/<id>.json                  what belongs to the backup, with sizes and checksums; written last
//! ```
//! In: an open warehouse, a location. Out: a backup that can be verified, and restored into an empty warehouse at the
//! same place or at another. Every backup is whole; it copies only the files that no earlier one has.
//!
//! **Invariants:** a backup is there if its list is, and then so is every file of it; what a catalog names is copied after
//! the catalog; nothing is ever deleted or replaced in a backup. Not here: rows that are only in a commit log, which the
//! caller brings into files before (`FLUSH TABLE`); the command line.

mod copy;
mod layout;
mod relocate;
mod restore;
mod take;
mod verify;

pub use copy::Progress;
pub use layout::{Backup, BackupFile, backups};
pub use restore::{Restored, restore};
pub use take::{Taken, take};
pub use verify::{Verified, verify};
