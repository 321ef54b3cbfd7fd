//! Resource plans as Hive has them: pools of queries, who goes into which, and triggers that kill or move a query.
//!
//! ```text
//! PlanChange (a statement) ─► ResourcePlans::apply ─► ResourcePlans   stored by stoa-catalog, one text per plan
//!                                                        └► the active plan ─► Destination of a session
//!                                                                           └► triggers of its pool ─► kill, move
//! ```
//! In: changes, and who asks. Out: plans, what is wrong with them, and where a query goes. At most one plan is active.
//!
//! **Invariants:** a plan that is enabled or active is valid ([`ResourcePlan::problems`]), and is not changed until it is
//! disabled; a change that fails changes nothing.
//!
//! Not here: where plans are kept (`stoa-catalog`), statements as texts (`stoa-sql`), slots, memory and queries
//! (`stoa-query`).
//!
//! Rules and texts are those of Hive 4.0.1, unless a comment says otherwise.

mod change;
mod destination;
mod edit;
mod failure;
mod mapping;
mod plan;
mod plan_edit;
mod problems;
mod show;
mod trigger;

pub use change::{PlanChange, PoolSettings, PoolTarget, Setting};
pub use destination::Destination;
pub use edit::ResourcePlans;
pub use mapping::{Mapping, MappingKind};
pub use plan::{PlanPool, PlanStatus, ResourcePlan, SchedulingPolicy};
pub use trigger::{Action, Counter, Trigger};

/// What Hive's tables call queries of no pool, in mappings.
pub const UNMANAGED: &str = "<unmanaged>";

/// What Hive's tables call queries of no pool, where triggers are attached.
pub const UNMANAGED_QUERIES: &str = "<unmanaged queries>";
