//! Who is on the other side of a connection, and the handles that it is given.

use std::net::IpAddr;

use stoa_env::random;
use stoa_thrift::{HANDLE_PART_BYTES, Handle};

/// The client of a connection, or of a request over HTTP.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Who it said it is.
    pub(crate) user: Option<String>,
    /// Whether that was checked, or need not be.
    pub(crate) is_known: bool,
    /// Where it is.
    pub(crate) address: IpAddr,
    /// The sessions that it began, which end with its connection; not over HTTP.
    pub(crate) opened: Vec<Handle>,
}

impl Peer {
    /// Somebody at an address who has said nothing yet.
    pub(crate) fn new(address: IpAddr) -> Self {
        Self { user: None, is_known: false, address, opened: Vec::new() }
    }
}

/// A handle that nobody can guess.
pub(crate) fn new_handle() -> Handle {
    Handle {
        guid: random::bytes::<HANDLE_PART_BYTES>(),
        secret: random::bytes::<HANDLE_PART_BYTES>(),
    }
}
