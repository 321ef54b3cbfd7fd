//! Parts of large plans on other daemons: the way there, and errors on the way back.
//!
//! The library `datafusion-distributed` cuts a plan into tasks and moves rows between them. This crate carries its
//! messages from daemon to daemon: [`serve`] answers them on a port of its own, [`Channels`] sends them. Both are given
//! connections by a [`Network`], which is the membership with its pinned certificates ([`Members`]), or a test.
//!
//! **Invariants:** no byte from a connection is handled before the network has said who it is from. Connecting ends
//! within the network's limit; a connection whose other side gives no sign of life ends within [`SILENCE_MAX`].
//! Only daemons of one [`build`] compute parts of one plan: plans as bytes are compatible with nothing else.
//!
//! Not here: which plans are cut, what their leaves are, who may compute how much (`stoa-query`).

mod build;
mod channels;
mod errors;
mod network;
mod serve;

pub use build::build;
pub use channels::{Channels, daemon_of, url_of};
pub use errors::{received, sent};
pub use network::{Members, Network, Socket};
pub use serve::{SILENCE_MAX, serve};
