//! What a daemon says of itself.

use stoa_cluster::DaemonId;

/// What a daemon says of itself when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonInfo {
    /// Its id.
    pub id: DaemonId,
    /// The name of its host, for people.
    pub name: String,
    /// Where other daemons reach it.
    pub peer_address: String,
    /// Where PostgreSQL's clients reach it.
    pub pg_address: String,
    /// Where HTTP clients reach it.
    pub http_address: String,
    /// Where Flight clients reach it.
    pub flight_address: String,
    /// Its availability zone; empty where that does not matter.
    pub zone: String,
    /// Which build it runs.
    pub build: String,
    /// The oldest protocol between daemons that it speaks.
    pub protocol_min: u16,
    /// The newest protocol between daemons that it speaks.
    pub protocol_max: u16,
    /// How many cores it computes on.
    pub cores: u32,
    /// How many bytes its cache may take.
    pub cache_bytes: u64,
    /// SHA-256 of the certificate that it shows to other daemons.
    pub certificate: [u8; 32],
}

/// What the database says of a daemon's newest life. Times are milliseconds since the Unix epoch on its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaemonLife {
    /// Its number: no two living daemons have the same, and it is as small as it could be when it joined.
    pub number: u32,
    /// When its newest life joined.
    pub joined_at_ms: i64,
    /// Since when it has had its state.
    pub state_since_ms: i64,
}
