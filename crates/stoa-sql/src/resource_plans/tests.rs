use super::*;
use crate::parse as parse_all;

fn kind(sql: &str) -> StatementKind {
    parse_all(sql, |_| Ok(None)).unwrap().remove(0).kind
}

fn check(sql: &str, expected: PlanChange) {
    match kind(sql) {
        StatementKind::ResourcePlan(found) => assert_eq!(found, expected, "{sql}"),
        other => panic!("{sql}: {other:?}"),
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn plans_pools_and_triggers() {
    check(
        "create resource plan if not exists P with query_parallelism = 4",
        PlanChange::CreatePlan {
            plan: text("p"),
            if_not_exists: true,
            like: None,
            parallelism: Some(4),
        },
    );
    check(
        "ALTER RESOURCE PLAN p UNSET DEFAULT POOL, QUERY_PARALLELISM;",
        PlanChange::AlterPlan {
            plan: text("p"),
            parallelism: Setting::Unset,
            default_pool: Setting::Unset,
        },
    );
    let enabled = |enable, activate, replace| PlanChange::EnablePlan {
        plan: text("p"),
        enable,
        activate,
        replace,
    };
    check("ALTER RESOURCE PLAN p ENABLE ACTIVATE WITH REPLACE", enabled(true, true, true));
    check("ALTER RESOURCE PLAN p ACTIVATE ENABLE", enabled(true, true, false));
    check("ALTER RESOURCE PLAN p ENABLE", enabled(true, false, false));
    check(
        "REPLACE ACTIVE RESOURCE PLAN WITH q",
        PlanChange::ReplacePlan { plan: None, with: text("q") },
    );
    check(
        "CREATE POOL p.\"Default\".c1 WITH ALLOC_FRACTION=0.3, SCHEDULING_POLICY='FIFO', QUERY_PARALLELISM=3",
        PlanChange::CreatePool {
            plan: text("p"),
            path: text("Default.c1"),
            settings: PoolSettings {
                alloc_fraction: Some(0.3),
                parallelism: Some(3),
                policy: Setting::Set(SchedulingPolicy::Fifo),
                path: None,
            },
        },
    );
    check(
        "CREATE TRIGGER p.t WHEN elapsed_time > '30sec' DO MOVE TO a.b",
        PlanChange::CreateTrigger {
            plan: text("p"),
            name: text("t"),
            trigger: Trigger::new("ELAPSED_TIME", "30sec", true, Action::Move(text("a.b")))
                .unwrap(),
        },
    );
    check(
        "ALTER POOL p.a.b DROP TRIGGER t",
        PlanChange::RemoveTrigger {
            plan: text("p"),
            name: text("t"),
            from: PoolTarget::Pool(text("a.b")),
        },
    );
    check(
        "ALTER TRIGGER p.t ADD TO UNMANAGED",
        PlanChange::AddTrigger { plan: text("p"), name: text("t"), to: PoolTarget::Unmanaged },
    );
}

#[test]
fn mappings() {
    let mapping = |kind, pool: Option<&str>, order| Mapping {
        kind,
        name: text("It"),
        pool: pool.map(text),
        order,
    };
    check(
        "CREATE GROUP MAPPING 'It' IN p UNMANAGED WITH ORDER 1",
        PlanChange::CreateMapping {
            plan: text("p"),
            mapping: mapping(MappingKind::Group, None, 1),
        },
    );
    check(
        "ALTER USER MAPPING 'It' IN p TO a.b",
        PlanChange::AlterMapping {
            plan: text("p"),
            mapping: mapping(MappingKind::User, Some("a.b"), 0),
        },
    );
    check(
        "DROP APPLICATION MAPPING 'It' IN p",
        PlanChange::DropMapping {
            plan: text("p"),
            kind: MappingKind::Application,
            name: text("It"),
        },
    );
}

#[test]
fn what_is_shown_is_no_change() {
    for (sql, shown) in [
        ("SHOW RESOURCE PLANS", "ResourcePlans"),
        ("SHOW RESOURCE PLAN p", "ResourcePlan {"),
        ("ALTER RESOURCE PLAN p VALIDATE", "ResourcePlanProblems {"),
    ] {
        let StatementKind::Show(show) = kind(sql) else { panic!("{sql}") };
        assert!(format!("{show:?}").starts_with(shown), "{sql}: {show:?}");
    }
}

#[test]
fn what_is_none_is_told() {
    for (sql, sqlstate) in [
        ("CREATE RESOURCE PLAN WITH QUERY_PARALLELISM=1 x", "42601"),
        ("CREATE RESOURCE PLAN p WITH QUERY_PARALLELISM=-1", "42601"),
        ("ALTER RESOURCE PLAN p", "42601"),
        ("CREATE POOL p.a", "42601"),
        ("CREATE POOL p WITH QUERY_PARALLELISM=1", "42601"),
        ("CREATE POOL p.a WITH SCHEDULING_POLICY='no'", "22023"),
        ("CREATE TRIGGER p.t WHEN ELAPSED_TIME >= 5 DO KILL", "42601"),
        ("CREATE TRIGGER p.t WHEN ELAPSED_TIME > 5 AND BYTES_READ > 5 DO KILL", "42601"),
        ("CREATE TRIGGER p.t WHEN ELAPSED_TIME > '5 moons' DO KILL", "22023"),
        ("CREATE TRIGGER p.t WHEN SHUFFLE_BYTES > 5 DO KILL", "0A000"),
        ("CREATE TRIGGER t BEFORE INSERT ON x", "0A000"),
        ("ENABLE WORKLOAD", "42601"),
        ("SHOW RESOURCE PLAN", "42601"),
    ] {
        let error = parse_all(sql, |_| Ok(None)).unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate, "{sql}: {error}");
    }
    assert!(matches!(kind("CREATE USER mapping"), StatementKind::Role(_)));
}
