//! Resource plans: their changes, and what is shown of them.

use stoa_error::Result;
use stoa_workload::{PlanChange, ResourcePlan, ResourcePlans};

use crate::engine::resource_plans::take_over;
use crate::session::Session;
use crate::session::outcome::Completion;

/// Makes a change; it holds for the next statement.
///
/// # Errors
/// 42501 where the caller may not, and those of [`ResourcePlans::apply`] and of the catalog.
pub(crate) async fn run(session: &Session, change: &PlanChange) -> Result<Completion> {
    session.caller.must_be_superuser("change resource plans")?;
    let rights = session.gate.rights();
    let notices = rights.catalog().change_resource_plans(change).await?;
    take_over(rights, session.runner.pools()).await?;
    Ok(Completion { notices, ..Completion::of(change.tag()) })
}

/// All plans, for `SHOW`.
///
/// # Errors
/// 42501 where the caller may not; the catalog's.
pub(super) async fn all(session: &Session) -> Result<ResourcePlans> {
    session.caller.must_be_superuser("see resource plans")?;
    session.gate.rights().catalog().resource_plans().await
}

/// A plan as lines.
///
/// # Errors
/// As [`all`]; 42704 where there is no such plan.
pub(super) async fn lines(session: &Session, name: &str) -> Result<Vec<String>> {
    all(session).await?.plan(name).map(ResourcePlan::lines)
}

/// What is wrong with a plan, and what may be.
///
/// # Errors
/// As [`lines`].
pub(super) async fn problems(session: &Session, name: &str) -> Result<Vec<String>> {
    let plans = all(session).await?;
    let plan = plans.plan(name)?;
    Ok(plan.problems().into_iter().chain(plan.warnings()).collect())
}
