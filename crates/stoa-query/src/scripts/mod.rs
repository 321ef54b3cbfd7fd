//! Rows through programs: `hive_transform('command', 'description', (SELECT …))`, which HiveQL's `TRANSFORM` becomes.
//!
//! ```text
//! relation ─► node (logical) ─► exec (physical): plan partition ─► rows ─► stoa-script ─► rows ─► batches
//!                                 │ who asks, and may it? (`session`)
//! ```
//! **Invariants:** whether a caller may run a program is asked when it runs, whatever plan, view or template leads there.
//! A plan with a program stays on the daemon that was asked, and its answer is never given again.
//!
//! Not here: processes (`stoa-script`), HiveQL (`stoa-hiveql`).

mod exec;
mod node;
mod relation;
mod rows;
mod session;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::Extension;

use self::node::ScriptPlanner;
use self::relation::ScriptRelation;
pub use self::session::ScriptOptions;
pub(crate) use self::session::{Scripts, SessionScripts};

/// Adds what plans programs to a session's state.
pub(crate) fn install(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    builder.relation_planners().get_or_insert_default().insert(0, Arc::new(ScriptRelation) as _);
    builder.with_query_planner(Arc::new(ScriptPlanner))
}

/// Whether a node of a plan is a program.
pub(crate) fn is_script(extension: &Extension) -> bool {
    node::script(extension.node.as_ref()).is_some()
}
