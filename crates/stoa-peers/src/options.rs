//! How daemons talk to each other: limits and times.

use std::time::Duration;

use stoa_listen::Limits;

/// Limits and times of connections between daemons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerOptions {
    /// The oldest protocol that this process speaks.
    pub protocol_min: u16,
    /// The newest protocol that this process speaks, inclusive.
    pub protocol_max: u16,
    /// Which build this is, for logs and errors; at most 256 bytes of it are sent.
    pub build: String,
    /// Bytes of the largest request or answer.
    pub frame_bytes_max: usize,
    /// Bytes that wait to be sent, per connection. A single larger frame may wait alone.
    pub queued_bytes_max: usize,
    /// Requests that run at once, per incoming connection; beyond them, no more are read.
    pub requests_max: usize,
    /// Bytes of the requests that run at once, per incoming connection. A single larger one may run alone.
    pub request_bytes_max: usize,
    /// Incoming connections, those of strangers included until they are refused.
    pub connections_max: usize,
    /// Time for connecting, TLS and hello together, on either side.
    pub open_timeout: Duration,
    /// After this time without a byte from the peer, it is asked for a sign of life.
    pub ping_interval: Duration,
    /// After this time without a byte following that, the connection ends.
    pub ping_timeout: Duration,
    /// How long calls fail at once after a failed attempt to connect; doubles with each further failure.
    pub retry_min: Duration,
    /// The longest such time.
    pub retry_max: Duration,
    /// Time that running requests get at shutdown.
    pub shutdown_grace: Duration,
    /// What holds for incoming connections that have not proved who they are; the time to do so is
    /// [`Self::open_timeout`].
    pub limits: Limits,
}

impl Default for PeerOptions {
    fn default() -> Self {
        Self {
            protocol_min: 1,
            protocol_max: 1,
            build: concat!("stoa ", env!("CARGO_PKG_VERSION")).to_owned(),
            frame_bytes_max: 64 << 20,
            queued_bytes_max: 64 << 20,
            requests_max: 1024,
            request_bytes_max: 128 << 20,
            connections_max: 1024,
            open_timeout: Duration::from_secs(1),
            ping_interval: Duration::from_secs(2),
            ping_timeout: Duration::from_secs(3),
            retry_min: Duration::from_millis(100),
            // Short beside the time after which a daemon is suspected: one that is back is reached within the next probe.
            retry_max: Duration::from_millis(500),
            shutdown_grace: Duration::from_secs(10),
            limits: Limits::default(),
        }
    }
}
