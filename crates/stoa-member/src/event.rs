//! What the loop is told.

use stoa_catalog::ClusterState;
use stoa_cluster::lease::{Holder, LeaseEvent};
use stoa_cluster::membership::MemberEvent;

/// What has happened.
#[derive(Debug)]
pub(crate) enum Event {
    Member(MemberEvent),
    Lease(LeaseEvent),
    /// Members and leases were read.
    State {
        request: u64,
        state: Box<ClusterState>,
    },
    /// A peer shows everything of our log up to here.
    Told {
        peer: Holder,
        to: u64,
    },
    /// A takeover has ended.
    Taken {
        lease: String,
        is_done: bool,
    },
}
