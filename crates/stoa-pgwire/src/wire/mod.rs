//! Messages and the socket they travel on.
//!
//! **Invariant:** a message is read only within its own length, so that damaged input becomes an
//! error and never a panic or a message out of step.
//! Not here: what messages mean (see `connection`).

pub(crate) mod backend;
pub(crate) mod frontend;
pub(crate) mod stream;
