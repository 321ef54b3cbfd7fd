use super::*;
use crate::{Action, Mapping, MappingKind, PoolSettings, PoolTarget, Setting, Trigger};

fn text(text: &str) -> String {
    text.to_owned()
}

fn pool(path: &str, fraction: f64) -> PlanChange {
    let settings = PoolSettings {
        alloc_fraction: Some(fraction),
        parallelism: Some(1),
        ..PoolSettings::default()
    };
    PlanChange::CreatePool { plan: text("p"), path: text(path), settings }
}

fn created(plan: &str) -> PlanChange {
    PlanChange::CreatePlan { plan: text(plan), if_not_exists: false, like: None, parallelism: None }
}

fn enabled(plan: &str, activate: bool) -> PlanChange {
    PlanChange::EnablePlan { plan: text(plan), enable: true, activate, replace: false }
}

fn after(changes: &[PlanChange]) -> ResourcePlans {
    let apply = |plans: ResourcePlans, change: &PlanChange| plans.apply(change).unwrap().0;
    changes.iter().fold(ResourcePlans::default(), apply)
}

fn check_refused(plans: &ResourcePlans, change: &PlanChange, sqlstate: &str) {
    let error = plans.apply(change).unwrap_err();
    assert_eq!(error.sqlstate(), sqlstate, "{change:?}: {error}");
    assert!(error.hint().is_some() || sqlstate == "42710", "{change:?}: {error}");
}

#[test]
fn a_pool_that_moves_is_named_anew_everywhere() {
    let mapping = Mapping {
        kind: MappingKind::User,
        name: text("ann"),
        pool: Some(text("default.a")),
        order: 0,
    };
    let moved = PoolSettings { path: Some(text("def")), ..PoolSettings::default() };
    let plans = after(&[
        created("p"),
        pool("default.a", 1.0),
        pool("defaults", 0.0),
        PlanChange::CreateMapping { plan: text("p"), mapping },
        PlanChange::AlterPool { plan: text("p"), path: text("default"), settings: moved },
    ]);
    let plan = plans.plan("p").unwrap();
    let paths: Vec<&str> = plan.pools.keys().map(String::as_str).collect();
    assert_eq!(paths, ["def", "def.a", "defaults"]);
    assert_eq!(plan.default_pool.as_deref(), Some("def"));
    assert_eq!(plan.mappings[0].pool.as_deref(), Some("def.a"));
    let below = PoolSettings { path: Some(text("def.x")), ..PoolSettings::default() };
    let below = PlanChange::AlterPool { plan: text("p"), path: text("def"), settings: below };
    assert_eq!(plans.apply(&below).unwrap_err().sqlstate(), "22023");
}

#[test]
fn only_a_valid_plan_is_enabled_and_only_one_is_active() {
    let plans = after(&[created("p"), created("q"), pool("a", 0.5)]);
    check_refused(&plans, &enabled("p", true), "22023");
    let fraction = PoolSettings { alloc_fraction: Some(0.5), ..PoolSettings::default() };
    let half = PlanChange::AlterPool { plan: text("p"), path: text("default"), settings: fraction };
    let (plans, _) = plans.apply(&half).unwrap();
    let (plans, _) = plans.apply(&enabled("p", true)).unwrap();
    check_refused(&plans, &half, "55000");
    check_refused(&plans, &PlanChange::DisablePlan { plan: text("p") }, "55000");
    check_refused(&plans, &PlanChange::DropPlan { plan: text("p"), if_exists: false }, "55000");
    let (plans, _) = plans.apply(&enabled("q", true)).unwrap();
    assert_eq!(plans.active().map(|plan| plan.name.as_str()), Some("q"));
    assert_eq!(plans.plan("p").unwrap().status, PlanStatus::Enabled);
    let (plans, _) = plans.apply(&PlanChange::DisableManagement).unwrap();
    assert_eq!(plans.active(), None);
    assert_eq!(plans.plan("q").unwrap().status, PlanStatus::Enabled);
}

#[test]
fn a_plan_takes_the_place_of_another_one() {
    let plans = after(&[created("p"), created("q"), enabled("p", true)]);
    let replace = |plan: Option<&str>, with: &str| PlanChange::ReplacePlan {
        plan: plan.map(text),
        with: text(with),
    };
    check_refused(&plans, &replace(None, "nowhere"), "42704");
    assert_eq!(plans.apply(&replace(None, "p")).unwrap_err().sqlstate(), "22023");
    let (plans, _) = plans.apply(&replace(None, "q")).unwrap();
    let all: Vec<_> = plans.iter().map(|plan| (plan.name.as_str(), plan.status)).collect();
    assert_eq!(all, [("p", PlanStatus::Active), ("p_old_0", PlanStatus::Disabled)]);
}

#[test]
fn triggers_that_move_queries_nowhere_are_a_problem() {
    let trigger = Trigger::new("BYTES_READ", "1", false, Action::Move(text("nowhere"))).unwrap();
    let plans = after(&[
        created("p"),
        PlanChange::CreateTrigger { plan: text("p"), name: text("t"), trigger },
        PlanChange::AddTrigger {
            plan: text("p"),
            name: text("t"),
            to: PoolTarget::Pool(text("default")),
        },
        PlanChange::AlterPlan {
            plan: text("p"),
            parallelism: Setting::Set(9),
            default_pool: Setting::Unset,
        },
    ]);
    let plan = plans.plan("p").unwrap();
    assert_eq!(plan.problems().len(), 1, "{:?}", plan.problems());
    assert_eq!(plan.warnings().len(), 1);
    let dropped = PlanChange::DropTrigger { plan: text("p"), name: text("t") };
    let (plans, _) = plans.apply(&dropped).unwrap();
    assert!(plans.plan("p").unwrap().problems().is_empty());
    check_refused(&plans, &dropped, "42704");
}
