//! Resource plans as they are stored: in SQLite and in PostgreSQL, for all who open the catalog.
#![allow(clippy::unwrap_used)]

use stoa_catalog::Catalog;
use stoa_workload::{Mapping, MappingKind, PlanChange};

use self::common::Database;

mod common;

over_both!(
    what_one_changes_the_other_sees_and_the_version_counts,
    a_change_that_fails_changes_nothing,
    of_changes_at_once_all_are_there,
    a_copy_has_the_plans,
);

fn created(plan: &str) -> PlanChange {
    PlanChange::CreatePlan {
        plan: plan.to_owned(),
        if_not_exists: false,
        like: None,
        parallelism: Some(4),
    }
}

fn activated(plan: &str) -> PlanChange {
    PlanChange::EnablePlan { plan: plan.to_owned(), enable: true, activate: true, replace: false }
}

fn mapped(user: &str) -> PlanChange {
    let mapping = Mapping { kind: MappingKind::User, name: user.to_owned(), pool: None, order: 1 };
    PlanChange::CreateMapping { plan: "p".to_owned(), mapping }
}

async fn apply(catalog: &Catalog, changes: &[PlanChange]) {
    for change in changes {
        catalog.change_resource_plans(change).await.unwrap();
    }
}

async fn what_one_changes_the_other_sees_and_the_version_counts(database: Database) {
    let (first, second) = (database.open().await, database.open().await);
    assert_eq!(first.resource_plans().await.unwrap().iter().count(), 0);
    apply(&first, &[created("p"), mapped("it's \"ann\""), created("q")]).await;
    apply(&second, &[activated("p")]).await;
    let plans = first.resource_plans().await.unwrap();
    assert_eq!(plans.active().map(|plan| plan.name.as_str()), Some("p"));
    assert_eq!(plans.plan("p").unwrap().mappings[0].name, "it's \"ann\"");
    assert_eq!(plans, second.resource_plans().await.unwrap());
    assert_eq!(first.policy_version().await.unwrap(), 4);
    // Two plans change, in one change.
    apply(&first, &[activated("q")]).await;
    let plans = second.resource_plans().await.unwrap();
    assert_eq!(plans.active().map(|plan| plan.name.as_str()), Some("q"));
    assert_eq!(second.policy_version().await.unwrap(), 5);
    // What changes nothing counts as nothing.
    apply(&first, &[activated("q")]).await;
    assert_eq!(first.policy_version().await.unwrap(), 5);
    let dropped = PlanChange::DropPlan { plan: "p".to_owned(), if_exists: false };
    apply(&first, &[dropped]).await;
    assert_eq!(second.resource_plans().await.unwrap().iter().count(), 1);
    // Of another catalog in the database there are none.
    let other = database.open_as("other").await;
    assert_eq!(other.resource_plans().await.unwrap().iter().count(), 0);
}

async fn a_change_that_fails_changes_nothing(database: Database) {
    let catalog = database.open().await;
    apply(&catalog, &[created("p")]).await;
    let before = catalog.resource_plans().await.unwrap();
    for (change, sqlstate) in [(created("p"), "42710"), (activated("q"), "42704")] {
        let error = catalog.change_resource_plans(&change).await.unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate, "{change:?}");
    }
    assert_eq!(catalog.resource_plans().await.unwrap(), before);
    assert_eq!(catalog.policy_version().await.unwrap(), 1);
}

async fn of_changes_at_once_all_are_there(database: Database) {
    let (first, second) = (database.open().await, database.open().await);
    apply(&first, &[created("p")]).await;
    let of = async |catalog: &Catalog, whose: &str| {
        for number in 0..10 {
            apply(catalog, &[mapped(&format!("{whose}{number}"))]).await;
        }
    };
    tokio::join!(of(&first, "a"), of(&second, "b"));
    let plans = first.resource_plans().await.unwrap();
    assert_eq!(plans.plan("p").unwrap().mappings.len(), 20);
    assert_eq!(second.policy_version().await.unwrap(), 21);
}

async fn a_copy_has_the_plans(database: Database) {
    let other = database.another();
    let (source, target) = (database.open().await, other.open().await);
    apply(&source, &[created("p"), mapped("ann"), activated("p")]).await;
    source.copy_to(&target).await.unwrap();
    let plans = target.resource_plans().await.unwrap();
    assert_eq!(plans, source.resource_plans().await.unwrap());
}
