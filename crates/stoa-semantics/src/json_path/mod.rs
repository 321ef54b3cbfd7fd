//! Paths of SQL/JSON: `$.a[*] ? (@ > 2)`.
//!
//! ```text
//! text ─► parse: a tree of steps and predicates ─► run: the items that it leads to, for one value
//! ```
//! **Invariants:** nesting is bounded by [`DEPTH_MAX`]; a path that PostgreSQL takes and this module does not is
//! refused (0A000): `keyvalue()` and `datetime()`.
//!
//! Source: section 9.16.2 of PostgreSQL's manual, `jsonpath_gram.y` and `jsonpath_exec.c` for what is an error.
//!
//! Not here: the functions (`json`).

mod parse;
mod run;

pub(crate) use parse::Path;
pub(crate) use run::{Answer, Failure, run};

/// Parts of a path within each other, at most.
pub(crate) const DEPTH_MAX: usize = 100;
