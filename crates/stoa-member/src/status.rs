//! What people are shown of a cluster.

use stoa_catalog::{DaemonInfo, DaemonLife};
use stoa_cluster::membership::MemberState;
use stoa_cluster::{DaemonId, Incarnation};
use stoa_peers::PeerStatistics;

/// The cluster as one daemon knows it.
#[derive(Clone, Debug)]
pub struct MembersStatus {
    /// This daemon.
    pub me: DaemonId,
    /// The epoch: one more with every change of members.
    pub epoch: u64,
    /// Whether this daemon may answer exact reads now.
    pub exact: bool,
    /// The daemons, by id.
    pub members: Vec<MemberStatus>,
    /// Logs that are not retired, and who has each.
    pub logs: Vec<LogOwner>,
    /// Takeovers of others' logs that this daemon has finished since it started.
    pub takeovers: u64,
    /// Rows of other daemons that are in no file yet.
    pub copied_rows: u64,
    /// Bytes that they hold.
    pub copied_bytes: usize,
    /// Bytes of this daemon's records that are in no file yet, kept for others.
    pub shipping_bytes: usize,
}

/// A daemon.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// What it says of itself.
    pub info: DaemonInfo,
    /// Its life.
    pub incarnation: Incarnation,
    /// Its state.
    pub state: MemberState,
    /// Its number, and when it joined and changed.
    pub life: Option<DaemonLife>,
    /// Whether it is dead because it ended in order.
    pub has_left: bool,
    /// Whether this daemon sends it requests.
    pub routed: bool,
    /// Daemons that cannot reach it.
    pub suspected_by: Vec<DaemonId>,
    /// What this daemon exchanged with it.
    pub exchanged: Option<PeerStatistics>,
}

impl MemberStatus {
    /// Whether it takes requests.
    pub fn is_up(&self) -> bool {
        self.state == MemberState::Up
    }
}

/// A log and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOwner {
    /// The log.
    pub log: String,
    /// Where it is.
    pub place: String,
    /// Who writes it or takes it over.
    pub owner: DaemonId,
    /// Whether that life of the owner is a living member.
    pub alive: bool,
    /// How often it has changed hands.
    pub epoch: u64,
}
