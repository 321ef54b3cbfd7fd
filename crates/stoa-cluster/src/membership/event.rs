//! What happens to a member, and what it wants done.

use super::{MemberState, MemberTable};
use crate::lease::Holder;
use crate::{DaemonId, DatabaseTime, Incarnation};

/// What happens to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberEvent {
    /// Time has passed; send it a few times per second.
    Tick,
    /// The database added us.
    Joined {
        /// The number of the request.
        request: u64,
        /// Our life.
        incarnation: Incarnation,
    },
    /// The database extended our lease.
    Renewed {
        /// The number of the request.
        request: u64,
    },
    /// A statement of ours met no living row: we are dead.
    Refused,
    /// The table of members, as of a read with this number.
    Read {
        /// The number of the request.
        request: u64,
        /// All rows.
        table: MemberTable,
    },
    /// The table may have changed: read it with the next tick.
    Changed,
    /// A peer answered a probe.
    Answered {
        /// The peer.
        peer: DaemonId,
        /// The number of the probe.
        probe: u64,
    },
    /// A request to a peer failed for lack of a connection or an answer.
    Failed {
        /// The peer.
        peer: DaemonId,
    },
    /// We have read what we missed (see [`crate::fresh::Replica`]), and can take requests.
    Ready,
    /// An operator wants us to leave: no new requests, no homes.
    Drain,
    /// We have finished: nothing is answered any more from now on.
    Leave,
}

/// What a member wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberAction {
    /// Add us: [`MemberTable::join`].
    Join {
        /// Names the answer.
        request: u64,
    },
    /// Extend our lease: [`MemberTable::renew`].
    Renew {
        /// Names the answer.
        request: u64,
        /// Who we are.
        me: Holder,
    },
    /// Change our state: [`MemberTable::set_state`].
    SetState {
        /// Who we are.
        me: Holder,
        /// The state.
        state: MemberState,
    },
    /// Read all rows and the epoch, in one statement.
    Read {
        /// Names the answer.
        request: u64,
    },
    /// Send a tiny report to a peer.
    Probe {
        /// The peer.
        peer: DaemonId,
        /// Names the answer.
        probe: u64,
    },
    /// Note that a peer does not answer: [`MemberTable::suspect`].
    Suspect {
        /// The peer.
        peer: Holder,
        /// Who we are.
        me: Holder,
    },
    /// Note that a suspect answers again: [`MemberTable::trust`].
    Trust {
        /// The peer.
        peer: Holder,
        /// Who we are.
        me: Holder,
    },
    /// Declare a peer dead: [`MemberTable::expire`].
    Expire {
        /// The peer.
        peer: Holder,
        /// `until` of its row as observed.
        observed: DatabaseTime,
    },
    /// We are dead. Refuse everything and end the process, or join again with a new [`Membership`].
    End,
}
