//! Who may do what with which table: roles, memberships, grants, owners.
//!
//! In: what the catalog has stored of them. Out: a [`Policy`], one version of all of it, and its
//! answer to one question, [`Policy::access`]: which columns of this table this role may read, and
//! whether it may write. [`ScramSecret`] is what is kept of a password.
//!
//! ```text
//! stoa-catalog ─► Role, Membership, Grant, owners ─► Policy ─► access(role, namespace, table)
//!                                                               │
//!                              Access { select: Columns, insert, update, delete, is_owner }
//! ```
//!
//! **Invariants:** a pure function: no I/O, no clock, no randomness; a role that is not known may do
//! nothing; a grant only ever adds; nothing printed for debugging shows a key. Not here: where it is
//! stored (`stoa-catalog`), which columns a statement touches (`stoa-query`), how a client proves who
//! it is (the protocols).

mod access;
mod error;
mod grant;
mod membership;
mod policy;
mod role;
mod scram;
mod standing;

pub use access::{Access, Columns};
pub use error::unknown_role;
pub use grant::{Grant, Grantee, Object, Privilege};
pub use membership::{Membership, Memberships};
pub use policy::{Policy, PolicyParts};
pub use role::Role;
pub use scram::ScramSecret;
pub use standing::Standing;
