//! Who may connect: limits that hold before a client has said who it is.
//!
//! In: sockets that a listener accepted, and what its protocol knows of their clients. Out: sockets
//! that are within the limits ([`Guarded`]), or the reason why one is not ([`Refusal`]).
//!
//! ```text
//!  accept ─► Door ─┬─► Guarded socket ─► protocol: known (logged in), or busy with a request
//!                  │        waits: for a login, a request's head, the next request
//!                  └─► Refusal
//! ```
//!
//! A connection *waits* as long as its client has not logged in, or, where each request says who
//! sends it, as long as no request is under way. Only so many connections may be open; when one more
//! comes, the connection that has waited longest makes room. So clients that connect and say nothing,
//! however many they are, delay others for as long as it takes to log in, not for as long as they
//! like.
//!
//! **Invariants:** a connection that does not wait is never closed from here. A connection holds no
//! descriptor with a number from [`Limits::descriptors_max`] on: those are left for files. A client
//! that waits is read from up to [`Limits::waiting_bytes_max`] and one read more, until its time is up.
//!
//! Not here: protocols, passwords, TLS.

mod door;
mod guarded;
mod guest;
mod limits;
mod write_through;

pub use door::{Door, Refusal, refused_connections, turn_away};
pub use guarded::Guarded;
pub use guest::{Busy, Guest};
pub use limits::Limits;
