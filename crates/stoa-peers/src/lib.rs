//! How the daemons of a cluster talk to each other.
//!
//! In: the membership as this daemon knows it ([`Directory`]), what it answers ([`Handler`]), and calls to
//! other daemons ([`Peers::call`]). Out: the answers, or errors that say whether the peer was reached.
//!
//! ```text
//!  call ─► Link: one per peer ─► connection ─► queue ─► writer ══ TLS ══► reader ─► a task per request
//!            idle, opening,         │  calls that wait, by id                            │ Handler
//!            up, failed             └◄─ reader ══════════ TLS ══════ writer ◄─ queue ◄───┘
//! ```
//!
//! A daemon opens one connection to each peer that it calls, and keeps it. A process makes its key and
//! certificate when it starts ([`Identity`]); the membership publishes the certificate's SHA-256. Both
//! sides prove that they have the key of their certificate, and each compares the other's fingerprint with
//! the membership. Nothing else authenticates.
//!
//! Above TLS 1.3 both sides send a hello, then frames:
//!
//! ```text
//!  magic 8 bytes | length u32 | protocol_min u16 | protocol_max u16 | …          hello
//!  length u32 | type u8 | 0 u8 | kind u16 | id u64 | length bytes                 frame
//! ```
//!
//! **Invariants:** no byte of a request is handled before its sender is known to be a living member. Every
//! call ends: at its limit, or when the connection ends, which it does within about five seconds if the peer is
//! frozen or its packets are lost. Requests, answers and queued bytes are bounded per connection. No bytes
//! make this crate panic.
//!
//! Not here: what is asked and answered (the caller's kinds and bodies), who is a member (`stoa-cluster`,
//! `stoa-catalog`), repeating a call elsewhere.

mod directory;
mod error_text;
mod failure;
mod frame;
mod hello;
mod identity;
mod incoming;
mod link;
mod options;
mod outgoing;
mod peers;
mod pulse;
mod queue;
mod raw;
mod registry;
mod shared;
mod slots;
mod statistics;
mod tls;
mod traffic;

pub use directory::{Directory, Handler, PeerAddress};
pub use error_text::{decode as decode_error, encode as encode_error};
pub use failure::is_unreachable;
pub use identity::Identity;
pub use options::PeerOptions;
pub use peers::Peers;
pub use raw::{RawClient, RawServer};
pub use statistics::PeerStatistics;
