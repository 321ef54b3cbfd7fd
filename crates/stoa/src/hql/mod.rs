//! HQL from a shell: on this machine's warehouse, or on a server.
//!
//! In: lines. Out: what statements print. The language and the shell are `stoa-hql`'s; here are a
//! terminal to type at ([`Editor`]) and a server to send statements to ([`RemoteStatements`]).

mod editor;
mod remote;

pub use editor::Editor;
pub use remote::RemoteStatements;
