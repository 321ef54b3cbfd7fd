//! Which files may be deleted, where several daemons read.
//!
//! Each member reports, with its renewals, the oldest version of each table that its reads still use. A file
//! that version `v` replaced is needed by reads of versions before `v`.
//!
//! **Invariant:** a file is deleted only if no living member has reported a version that needs it, and a whole
//! grace period after it was replaced: longer than a lease, so that whoever began to read the
//! older version has reported that by then, or is dead.
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
    let mut living = pins.iter().filter(|pin| members.lives(pin.holder));
    now.since(file.seen) >= grace && living.all(|pin| pin.version >= file.replaced_in)
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
        assert!(!may_delete(file, &[], &members, grace, Monotonic(grace / 2)));
        members.set_state(holder, crate::membership::MemberState::Dead);
        assert!(may_delete(file, &pin(6), &members, grace, late));
    }
}
