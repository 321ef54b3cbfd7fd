//! HiveQL as text: what Hive's users write becomes a statement of Stoa's SQL.
//!
//! ```text
//! text ─► variables ─► lexer ─► statement by its first words ─┬► queries ─► expressions ─► calls
//!                                                             ├► inserts
//!                                                             ├► definitions, shows, rights
//!                                                             ├► resource_plans
//!                                                             ├► scripts (TRANSFORM), script_files (ADD FILE)
//!                                                             └► refused by name (0A000)
//! ```
//! In: the text of one statement. Out: a text that `stoa-sql` reads, and that means in Stoa what the first one means in
//! Hive. Where Hive's operators and functions mean something else than PostgreSQL's, they become calls of `hive_…`
//! functions, which [`pack`] computes for one row and `stoa-semantics` for columns.
//!
//! **Invariants:** what the text means depends on nothing but itself, so that plans, templates and reports are shared
//! with all other sessions; what is not understood is refused, never passed on; no text makes it panic.
//!
//! Not here: tables and types of columns; comparisons of mixed types (`stoa-semantics`, `hive`); Hive's commands that
//! answer with lists (`stoa-hs2`). Hive's meaning is that of version 4.0.1.

mod calls;
mod cursor;
mod definitions;
mod dialect;
mod expressions;
mod external;
mod forms;
mod inserts;
mod lateral_views;
mod lexer;
mod made;
mod nulls;
mod options;
pub mod pack;
mod partitions;
mod queries;
mod refused;
mod resource_plans;
mod rights;
mod script_files;
mod scripts;
mod shows;
mod statements;
mod types;
mod variables;
mod views;

pub use calls::function_names;
pub use forms::{Form, Skeleton};
pub use lexer::DEFAULT_DATABASE;
pub use options::Options;
pub use statements::{split, translate};
pub use variables::{substituted, without_prefix};
