//! Which files may be deleted, where several daemons read.
//!
//! Each member reports, with its renewals, the oldest version of each table that its reads still use. A file
//! that version `v` replaced is needed by reads of versions before `v`.
//!
//! **Invariants:** a file is deleted only if every living member has reported a version that does not need it
//! (a member that has reported nothing holds all files), and a whole grace period after it was replaced, which is
//! for other engines, who report nothing. A member never begins to read a version older than the one it has
//! reported.
//!
//! Not here: finding files that no version names, and the versions that users want to keep.

use std::time::Duration;

use crate::Monotonic;
use crate::lease::Holder;
use crate::membership::MemberTable;

/// The oldest version of one table that a member's reads use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Who reads.
    pub holder: Holder,
    /// The version.
    pub version: u64,
}

/// A file that is in no version from `replaced_in` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplacedFile {
    /// The first version without the file.
    pub replaced_in: u64,
    /// When this daemon saw that version for the first time.
    pub seen: Monotonic,
}

/// Whether a file may be deleted. `members` and `pins` must come from one read of the database.
pub fn may_delete(
    file: ReplacedFile,
    pins: &[Pin],
    members: &MemberTable,
    grace: Duration,
    now: Monotonic,
) -> bool {
    let has_moved_on =
        |holder| pins.iter().any(|pin| pin.holder == holder && pin.version >= file.replaced_in);
    let mut holders =
        members.iter().map(|(daemon, row)| Holder { daemon, incarnation: row.incarnation });
    now.since(file.seen) >= grace && holders.all(|h| !members.lives(h) || has_moved_on(h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DaemonId, DatabaseTime};

    #[test]
    fn pins_of_the_living_hold_files() {
        let mut members = MemberTable::default();
        let ttl = Duration::from_secs(5);
        let daemon = DaemonId::from_bits(1);
        let incarnation = members.join(daemon, ttl, DatabaseTime::default());
        let holder = Holder { daemon, incarnation };
        let file = ReplacedFile { replaced_in: 7, seen: Monotonic::default() };
        let grace = Duration::from_secs(600);
        let late = Monotonic(grace);
        let pin = |version| [Pin { holder, version }];
        assert!(!may_delete(file, &pin(6), &members, grace, late));
        assert!(may_delete(file, &pin(7), &members, grace, late));
        assert!(!may_delete(file, &pin(7), &members, grace, Monotonic(grace / 2)));
        assert!(!may_delete(file, &[], &members, grace, late));
        members.set_state(holder, crate::membership::MemberState::Dead);
        assert!(may_delete(file, &pin(6), &members, grace, late));
    }
}
