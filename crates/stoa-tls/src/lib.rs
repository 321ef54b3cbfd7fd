//! TLS for the servers of all protocols.
//!
//! In: files with a certificate, its key and, where clients need certificates too, the authorities
//! that issue those; sockets. Out: [`Tls`], what connections are encrypted with at the moment, and
//! [`Socket`], which may be encrypted.
//!
//! ```text
//! files ─► Tls ─── watch: the files changed ─► read them again
//!           └─► Socket::encrypted ─► handshake at the first read or write ─► plain bytes
//! ```
//!
//! **Invariants:** files that cannot be used never replace those in use. A connection keeps the
//! certificate that it began with. Where authorities for clients are named, no byte of a client
//! without a certificate of theirs gets through. A handshake takes [`HANDSHAKE_LIMIT`] at most.
//! Neither `Debug` nor an error shows a key.
//!
//! Not here: which addresses need TLS (the binary), what a protocol says before its handshake
//! (`stoa-pgwire`), passwords.

mod end_point;
mod files;
mod prefixed;
mod socket;
mod tls;

pub use files::TlsFiles;
pub use socket::{HANDSHAKE_LIMIT, HANDSHAKE_RECORD, Socket};
pub use tls::{Protocol, Tls};
