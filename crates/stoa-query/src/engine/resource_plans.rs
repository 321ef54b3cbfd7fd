//! The resource plan that pools go by is that of the catalog, whichever process changed it.
//!
//! Changes of plans count with those of the policy, which is asked for [once a second](EVERY), and after each change of
//! this process: so a change holds for its own next statement, and a second later for those of other daemons.

use std::sync::Arc;
use std::time::Duration;

use stoa_env::{task, timer};
use stoa_error::Result;

use crate::access::Rights;
use crate::engine::Engine;
use crate::run::active_plan::Groups;
use crate::run::pools::Pools;

/// How often the catalog is asked whether something changed.
const EVERY: Duration = Duration::from_secs(1);

/// Takes over the active plan as it is now, and follows its changes until the engine is gone.
///
/// # Errors
/// The catalog's.
pub(crate) async fn start(engine: &Arc<Engine>) -> Result<()> {
    let rights = engine.rights();
    take_over(rights, engine.handles.runner.pools()).await?;
    let mut version = rights.policy().version();
    let engine = Arc::downgrade(engine);
    drop(task::spawn(async move {
        loop {
            timer::sleep(EVERY).await;
            let Some(engine) = engine.upgrade().filter(|engine| !engine.is_closing()) else {
                return;
            };
            let rights = engine.rights();
            // A catalog that does not answer is asked again; what it said holds until then.
            match rights.catalog().policy_version().await {
                Ok(now) if now != version => {
                    match take_over(rights, engine.handles.runner.pools()).await {
                        Ok(()) => version = now,
                        Err(error) => tracing::warn!(%error, "cannot read the resource plans"),
                    }
                }
                _ => {}
            }
        }
    }));
    Ok(())
}

/// Has the pools go by the active plan as it is now.
///
/// # Errors
/// The catalog's.
pub(crate) async fn take_over(rights: &Rights, pools: &Pools) -> Result<()> {
    rights.refresh().await?;
    let plans = rights.catalog().resource_plans().await?;
    let policy = rights.policy();
    let memberships = policy.memberships();
    let groups_of = |role: &stoa_access::Role| {
        let above = memberships.roles_of(&role.name).into_iter().filter(|name| *name != role.name);
        (role.name.clone(), above.map(str::to_owned).collect::<Vec<_>>())
    };
    let groups: Groups = policy.roles().map(groups_of).collect();
    pools.follow(plans.active(), groups);
    Ok(())
}
